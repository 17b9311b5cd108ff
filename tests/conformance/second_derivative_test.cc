// SPDX-License-Identifier: Apache-2.0
// The Jacobian of an op is a program of ops, so it has a Jacobian: that of every op at its
// samples, against differences of the first.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "accumulation/accumulate.h"
#include "differences.h"
#include "driver/op_support.h"
#include "ir/builder.h"
#include "ir/interpreter.h"
#include "orders/order.h"

namespace loipe::testing {
namespace {

constexpr std::uint64_t kSeed = 20240612;
constexpr double kStep = 0.1;              ///< samples keep a larger distance from kinks
constexpr std::int64_t kMostEntries = 48;  ///< of a first derivative
constexpr std::size_t kMostSamples = 6;    ///< of one op

const std::set<std::string_view> kNotTheDerivative{"stop_gradient"};

/// d(op)/d(operand k) as a program; its only output has the axes of the result, then of the operand.
Program first_derivative(const OpDef& op, const Sample& sample, std::size_t k) {
  Builder b;
  std::vector<Value> operands;
  for (const Tensor& tensor : sample.operands)
    operands.push_back(b.argument("x" + std::to_string(operands.size()), tensor.type()));
  const Program program = b.finish({b.emit(op, operands, sample.attributes)});
  Program first = accumulate(program, {{k}, reverse_order(program), {}}).program;
  first.set_outputs({first.outputs()[1]});
  return first;
}

bool is_differentiable_call(const OpDef& op, const Sample& sample, std::size_t k) {
  if (!op.jacobian.value.rule || &op == &argument_op() || kNotTheDerivative.contains(op.name)) return false;
  if (!is_floating(sample.operands[k].dtype())) return false;
  std::vector<const TensorType*> types;
  for (const Tensor& tensor : sample.operands) types.push_back(&tensor.type());
  const TensorType type = infer_type(op, types, sample.attributes);
  const std::int64_t entries = type.element_count() * sample.operands[k].element_count();
  return is_floating(type.dtype) && entries > 0 && entries <= kMostEntries;
}

std::vector<double> entries(const Tensor& tensor) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) result.push_back(tensor.at(i));
  return result;
}

/// Column by column: all entries of the first derivative by one entry of operand k.
void expect_derivative_of_first(const Program& first, const Sample& sample, std::size_t k) {
  const Tensor second =
      evaluate(accumulate(first, {{k}, reverse_order(first), {}}).program, sample.operands)[1];
  std::vector<Tensor> moved = sample.operands;
  const std::int64_t columns = sample.operands[k].element_count();
  for (std::int64_t column = 0; column < columns; ++column) {
    const double x = sample.operands[k].at(column);
    const auto curve = [&](double moved_x) {
      moved[k].set(column, moved_x);
      return entries(evaluate(first, moved)[0]);
    };
    const std::vector<double> expected = ridders_derivative(curve, x, kStep);
    moved[k].set(column, x);
    for (std::size_t row = 0; row < expected.size(); ++row)
      ASSERT_NEAR(second.at(static_cast<std::int64_t>(row) * columns + column), expected[row],
                  1e-8 * std::max(1.0, std::abs(expected[row])))
          << "row " << row << ", column " << column;
  }
}

/// Whether the op's own derivative has one: those of derivatives may not.
bool has_second_derivative(const OpDef& op) {
  return std::ranges::any_of(op_support(op), [](const OpSupport& field) {
    return field.derivative == DerivativeKind::hessian && field.why_not.empty();
  });
}

class SecondDerivative : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(SecondDerivative, EqualsDifferencesOfTheFirst) {
  const OpDef& op = *GetParam();
  if (!has_second_derivative(op)) return;
  Rng rng(kSeed);
  std::vector<Sample> samples = op.samples.value(rng);
  if (samples.size() > kMostSamples) samples.resize(kMostSamples);
  for (const Sample& sample : samples)
    for (std::size_t k = 0; k < sample.operands.size(); ++k) {
      if (!is_differentiable_call(op, sample, k)) continue;
      SCOPED_TRACE("seed " + std::to_string(kSeed) + ", {" + sample.attributes.print() + "} by operand " +
                   std::to_string(k));
      expect_derivative_of_first(first_derivative(op, sample, k), sample, k);
      if (HasFailure()) return;
    }
}

std::string test_name(const ::testing::TestParamInfo<const OpDef*>& info) {
  return std::string(info.param->name.value);
}

INSTANTIATE_TEST_SUITE_P(All, SecondDerivative, ::testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         test_name);

}  // namespace
}  // namespace loipe::testing
