// SPDX-License-Identifier: Apache-2.0
#include "passes/expansion/expansion.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/builder.h"
#include "ir/interpreter.h"
#include "ir/verifier.h"
#include "ops/tolerance.h"
#include "passes/pass_testing.h"
#include "passes/runner.h"

namespace loipe::passes {
namespace {

Program one_node(const OpDef& op, const Sample& sample) {
  Builder b;
  std::vector<Value> operands;
  for (const Tensor& operand : sample.operands)
    operands.push_back(b.argument("x" + std::to_string(operands.size()), operand.type()));
  return b.finish({b.emit(op, operands, sample.attributes)});
}

Sample in_single_precision(Sample sample) {
  for (Tensor& operand : sample.operands)
    if (is_floating(operand.dtype())) operand = operand.converted(DType::f32);
  return sample;
}

void expect_same(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.type(), expected.type());
  const double tolerance =
      is_floating(expected.dtype()) ? ops::relative_tolerance(Tolerance::function, expected.dtype()) : 0;
  for (std::int64_t i = 0; i < expected.element_count(); ++i) {
    const double a = actual.at(i), e = expected.at(i);
    if (std::isnan(e)) EXPECT_TRUE(std::isnan(a)) << "entry " << i << " is " << a;
    else if (std::isinf(e)) EXPECT_EQ(a, e) << "entry " << i;
    else EXPECT_NEAR(a, e, tolerance * std::max(1.0, std::abs(e))) << "entry " << i;
  }
}

void expect_expands(const OpDef& op, const Sample& sample) {
  SCOPED_TRACE(std::string(op.name.value) + " {" + sample.attributes.print() + "}");
  const Program program = one_node(op, sample), expanded = expansion(program);
  verify(expanded);
  for (std::uint32_t i = 0; i < expanded.size(); ++i) EXPECT_EQ(expanded.op(Value{i}).expand, nullptr);
  expect_same(evaluate(expanded, sample.operands)[0], evaluate(program, sample.operands)[0]);
}

/// The record's own evaluation is the oracle: at all samples and special points, in both
/// precisions, and with NaN.
TEST(Expansion, IsTheSameFunction) {
  int count = 0;
  for (const OpDef* op : all_ops()) {
    if (!op->expand) continue;
    ++count;
    Rng rng(11);
    std::vector<Sample> samples = op->samples.value(rng);
    for (std::size_t i = 0, regular = samples.size(); i < regular; ++i) {
      Sample with_nan = samples[i];
      if (is_floating(with_nan.operands[0].dtype()) && with_nan.operands[0].element_count() > 0)
        with_nan.operands[0].set(0, std::nan(""));
      samples.push_back(std::move(with_nan));
    }
    if (op->special_points)
      for (Sample& sample : op->special_points(rng)) samples.push_back(std::move(sample));
    for (const Sample& sample : samples) {
      expect_expands(*op, sample);
      if (op->name.value != "norm") expect_expands(*op, in_single_precision(sample));  // 1e-200 is no f32
    }
  }
  EXPECT_GT(count, 10);
}

/// A softmax and its logarithm share the exponentials; so do values and derivatives.
TEST(Expansion, LeavesEqualPartsToCommonSubexpressions) {
  Builder b;
  const Value x = b.argument("x", {DType::f64, {2, 3}});
  const Value softmax = b.emit("softmax", {x}), logarithm = b.emit("log_softmax", {x});
  const Program program = run_passes(b.finish({softmax, logarithm}));
  int exponentials = 0;
  for (std::uint32_t i = 0; i < program.size(); ++i) exponentials += program.op(Value{i}).name.value == "exp";
  EXPECT_EQ(exponentials, 1);
}

TEST(Expansion, OtherProgramsStay) {
  expect_unchanged(expansion, "%x: f64[2]", "  %1 = exp(%x) : f64[2]\n  return %1\n");
}

}  // namespace
}  // namespace loipe::passes
