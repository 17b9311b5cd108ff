// SPDX-License-Identifier: Apache-2.0
#include "passes/algebraic/algebraic.h"
#include "passes/pass_testing.h"

namespace loipe::passes {
namespace {

const std::string kMatrices = "%x: f64[2,3], %y: f64[3,4]";

TEST(EinsumRules, NeutralOperandsGo) {
  expect_rewrite(algebraic, kMatrices,
                 "  %c1 = constant {value=f64[](1.0)}\n  %c2 = constant {value=bool[3](1,1,1)}\n"
                 "  %1 = einsum(%x, %c1, %y, %c2) {spec=\"ab,,bc,b->ac\"}\n  return %1\n",
                 "  %1 = einsum(%x, %y) {spec=\"ab,bc->ac\"}\n  return %1\n");
  expect_rewrite(algebraic, "%x: f64[2,3]",
                 "  %c1 = constant {value=f64[3](1.0,1.0,1.0)}\n"
                 "  %1 = einsum(%x, %c1) {spec=\"ab,b->a\"}\n  return %1\n",
                 "  %1 = reduce_sum(%x) {axes=[1]}\n  return %1\n");
  // Without the ones, nothing would say how long b is.
  expect_unchanged(algebraic, "%x: f64[2]",
                   "  %c1 = constant {value=f64[3](1.0,1.0,1.0)}\n"
                   "  %1 = einsum(%x, %c1) {spec=\"a,b->a\"}\n  return %1\n");
  // A factor must remain.
  expect_unchanged(
      algebraic, "%p: bool[2]",
      "  %c1 = constant {value=f64[](1.0)}\n  %1 = einsum(%c1, %p) {spec=\",a->\"}\n  return %1\n");
}

TEST(EinsumRules, SingleFactorsAreSummedAndTransposed) {
  const auto expect = [](const std::string& spec, const std::string& expected) {
    expect_rewrite(algebraic, "%x: f64[2,3,4]", "  %1 = einsum(%x) {spec=\"" + spec + "\"}\n  return %1\n",
                   expected);
  };
  expect("abc->abc", "  return %x\n");
  expect("abc->cab", "  %1 = transpose(%x) {permutation=[2,0,1]}\n  return %1\n");
  expect("abc->b", "  %1 = reduce_sum(%x) {axes=[0,2]}\n  return %1\n");
  expect("abc->ca",
         "  %1 = reduce_sum(%x) {axes=[1]}\n  %2 = transpose(%1) {permutation=[1,0]}\n  return %2\n");
  // Summed in another order than reduce_sum would.
  expect_unchanged(algebraic, "%x: f64[2,3,4]", "  %1 = einsum(%x) {spec=\"cba->b\"}\n  return %1\n");
  expect_unchanged(algebraic, "%x: f64[2,2]", "  %1 = einsum(%x) {spec=\"aa->a\"}\n  return %1\n");
}

TEST(EinsumRules, ProductsWithoutSum) {
  expect_rewrite(algebraic, "%x: f64[], %y: f64[]", "  %1 = einsum(%x, %y) {spec=\",->\"}\n  return %1\n",
                 "  %1 = mul(%x, %y)\n  return %1\n");
  expect_rewrite(algebraic, "%s: f64[], %x: f64[2,3], %y: f64[3]",
                 "  %1 = einsum(%s, %y, %x) {spec=\",b,ab->ab\"}\n  return %1\n",
                 "  %1 = reshape(%y) {shape=[1,3]}\n  %2 = mul(%s, %1)\n  %3 = mul(%2, %x)\n  return %3\n");
  expect_rewrite(algebraic, "%x: f64[2], %y: f64[3]",
                 "  %1 = einsum(%x, %y) {spec=\"a,b->ab\"}\n  return %1\n",
                 "  %1 = reshape(%x) {shape=[2,1]}\n  %2 = reshape(%y) {shape=[1,3]}\n"
                 "  %3 = mul(%1, %2)\n  return %3\n");
  expect_unchanged(algebraic, "%x: f64[2], %y: f64[3,2]",
                   "  %1 = einsum(%x, %y) {spec=\"a,ba->ab\"}\n  return %1\n");
  expect_unchanged(algebraic, "%x: f64[2], %y: f64[2], %p: bool[2]",
                   "  %1 = einsum(%x, %y, %p) {spec=\"a,a,a->a\"}\n  return %1\n");
  expect_unchanged(algebraic, kMatrices, "  %1 = einsum(%x, %y) {spec=\"ab,bc->ac\"}\n  return %1\n");
}

}  // namespace
}  // namespace loipe::passes
