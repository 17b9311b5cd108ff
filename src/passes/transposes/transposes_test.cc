// SPDX-License-Identifier: Apache-2.0
#include "passes/transposes/transposes.h"

#include "base/rng.h"
#include "ir/interpreter.h"
#include "passes/pass_testing.h"

namespace loipe::passes {
namespace {

const std::string kArguments = "%A: f64[2,3], %B: f64[3,4], %T: f64[3,2,4], %v: f64[3], %w: f64[4]";

TEST(Transposes, EinsumsAreWrittenInTheOrderOfTheTransposed) {
  expect_rewrite(transposes, kArguments,
                 "  %1 = einsum(%A, %B) {spec=\"ab,bc->ac\"}\n"
                 "  %2 = transpose(%1) {permutation=[1,0]}\n  return %2\n",
                 "  %1 = einsum(%A, %B) {spec=\"ab,bc->ca\"}\n  return %1\n");
  // Somebody else reads it as it is.
  expect_unchanged(transposes, kArguments,
                   "  %1 = einsum(%A, %B) {spec=\"ab,bc->ac\"}\n"
                   "  %2 = transpose(%1) {permutation=[1,0]}\n  return %1, %2\n");
  expect_unchanged(transposes, kArguments, "  %1 = transpose(%A) {permutation=[1,0]}\n  return %1\n");
}

TEST(Transposes, ArePushedThroughSumsProductsAndScatters) {
  expect_rewrite(transposes, kArguments,
                 "  %1 = einsum(%A, %B) {spec=\"ab,bc->abc\"}\n  %2 = neg(%1)\n"
                 "  %3 = reshape(%v) {shape=[1,3,1]}\n  %4 = mul(%3, %2)\n"
                 "  %5 = transpose(%4) {permutation=[1,2,0]}\n  return %5\n",
                 "  %1 = reshape(%v) {shape=[1,3,1]}\n  %2 = transpose(%1) {permutation=[1,2,0]}\n"
                 "  %3 = einsum(%A, %B) {spec=\"ab,bc->bca\"}\n  %4 = neg(%3)\n"
                 "  %5 = mul(%2, %4)\n  return %5\n");
  expect_rewrite(transposes, kArguments,
                 "  %1 = einsum(%A, %B) {spec=\"ab,bc->acb\"}\n"
                 "  %2 = scatter(%B, %1) {axes=[1,0],base=1,extents=[4,3],shape=[2,4,3],to=\"1, a, b\"}\n"
                 "  %3 = transpose(%2) {permutation=[2,0,1]}\n  return %3\n",
                 "  %1 = einsum(%A, %B) {spec=\"ab,bc->bac\"}\n"
                 "  %2 = scatter(%B, %1) {axes=[1,0],base=1,extents=[4,3],shape=[3,2,4],to=\"b, 1, a\"}\n"
                 "  return %2\n");
  // The base is an argument, which cannot be had in another order.
  expect_unchanged(transposes, kArguments,
                   "  %1 = scatter(%v, %A) {axes=[0],base=1,extents=[3],shape=[2,3],to=\"1, a\"}\n"
                   "  %2 = transpose(%1) {permutation=[1,0]}\n  return %2\n");
}

TEST(Transposes, MeetAnotherTranspose) {
  expect_rewrite(transposes, kArguments,
                 "  %1 = transpose(%T) {permutation=[1,0,2]}\n  %2 = neg(%1)\n"
                 "  %3 = transpose(%2) {permutation=[1,0,2]}\n  return %3\n",
                 "  %1 = neg(%T)\n  return %1\n");
}

/// The last axis of the results, c, is the first of the outer product.
TEST(Transposes, ReadersAgreeOnTheLastAxis) {
  expect_rewrite(transposes, kArguments,
                 "  %1 = einsum(%w, %A) {spec=\"c,ab->cab\"}\n"
                 "  %2 = einsum(%1, %v) {spec=\"cab,b->ac\"}\n  %3 = reduce_sum(%1) {axes=[1]}\n"
                 "  %4 = einsum(%3, %A) {spec=\"cb,ab->ac\"}\n  return %2, %4\n",
                 "  %1 = einsum(%w, %A) {spec=\"c,ab->abc\"}\n"
                 "  %2 = einsum(%1, %v) {spec=\"abc,b->ac\"}\n  %3 = reduce_sum(%1) {axes=[0]}\n"
                 "  %4 = transpose(%3) {permutation=[1,0]}\n"
                 "  %5 = einsum(%4, %A) {spec=\"cb,ab->ac\"}\n  return %2, %5\n");
  // The two want different axes.
  expect_unchanged(transposes, kArguments,
                   "  %1 = einsum(%w, %A) {spec=\"c,ab->cab\"}\n"
                   "  %2 = einsum(%1, %v) {spec=\"cab,b->ac\"}\n"
                   "  %3 = einsum(%1, %v) {spec=\"cab,b->ca\"}\n  return %2, %3\n");
}

/// einsum sums by number of label, and so do both programs.
TEST(Transposes, KeepAllBits) {
  Rng rng(11);
  const Program program = program_from_text(program_text(
      kArguments,
      "  %1 = einsum(%A, %B) {spec=\"ab,bc->cba\"}\n  %2 = transpose(%1) {permutation=[2,1,0]}\n"
      "  %3 = reshape(%v) {shape=[1,3,1]}\n  %4 = sub(%2, %3)\n  %5 = einsum(%1, %A) {spec=\"cba,ab->ac\"}\n"
      "  %6 = transpose(%4) {permutation=[1,0,2]}\n  %7 = add(%6, %T)\n  return %5, %7\n"));
  const Program result = transposes(program);
  std::vector<Tensor> arguments;
  for (Value argument : program.arguments()) {
    arguments.emplace_back(program.type(argument));
    for (double& x : arguments.back().elements<double>()) x = rng.uniform(-1, 1);
  }
  const std::vector<Tensor> expected = evaluate(program, arguments), values = evaluate(result, arguments);
  for (std::size_t k = 0; k < expected.size(); ++k)
    for (std::int64_t i = 0; i < expected[k].element_count(); ++i)
      ASSERT_EQ(values[k].at(i), expected[k].at(i));
}

}  // namespace
}  // namespace loipe::passes
