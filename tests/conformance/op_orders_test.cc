// SPDX-License-Identifier: Apache-2.0
// Every op between others, through the whole flow: all elimination orders and both back ends
// give the same Jacobian, and so do the passes, which write composite ops in others.
#include <gtest/gtest.h>

#include <algorithm>

#include "driver/pipeline.h"
#include "ir/builder.h"
#include "ops/tolerance.h"
#include "orders/order.h"

namespace loipe::testing {
namespace {

constexpr std::uint64_t kSeed = 20240611;
constexpr std::size_t kMostSamples = 8;  ///< of one op; the first ones have the most different shapes

/// z = y^2, y = op(1 x_0, 1 x_1, ...): the op has vertices on both sides, at its own sample.
Program between_others(const OpDef& op, const Sample& sample) {
  Builder b;
  std::vector<Value> operands;
  for (const Tensor& tensor : sample.operands) {
    const Value x = b.argument("x" + std::to_string(operands.size()), tensor.type());
    operands.push_back(is_floating(tensor.dtype()) ? b.emit("mul", {x, b.scalar(1, tensor.dtype())}) : x);
  }
  const Value y = b.emit(op, operands, sample.attributes);
  return b.finish({b.emit("mul", {y, y})});
}

bool is_differentiable_call(const OpDef& op, const Sample& sample) {
  if (!op.jacobian.value.rule || &op == &argument_op()) return false;
  if (std::ranges::none_of(sample.operands, [](const Tensor& t) { return is_floating(t.dtype()); }))
    return false;
  std::vector<const TensorType*> types;
  for (const Tensor& tensor : sample.operands) types.push_back(&tensor.type());
  return is_floating(infer_type(op, types, sample.attributes).dtype);
}

void expect_near(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    ASSERT_EQ(actual[k].type(), expected[k].type());
    for (std::int64_t i = 0; i < expected[k].element_count(); ++i)
      ASSERT_NEAR(actual[k].at(i), expected[k].at(i), 1e-11 * std::max(1.0, std::abs(expected[k].at(i))))
          << "result " << k << ", entry " << i;
  }
}

class OpOrders : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(OpOrders, AllGiveTheSameJacobianOnEveryBackEnd) {
  const OpDef& op = *GetParam();
  Rng rng(kSeed);
  std::vector<Sample> samples = op.samples.value(rng);
  if (samples.size() > kMostSamples) samples.resize(kMostSamples);
  for (const Sample& sample : samples) {
    if (!is_differentiable_call(op, sample)) continue;
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", {" + sample.attributes.print() + "}");
    const Program program = between_others(op, sample);
    const auto run = [&](const EliminationOrder& order, const char* backend) {
      CompileOptions options{.request = {floating_arguments(program), order, {}}, .backend = backend};
      options.passes.verify_each = true;
      return compile(program, options).executable->run(sample.operands);
    };
    const std::vector<Tensor> expected = run(reverse_order(program), "reference");
    for (const EliminationOrder& order :
         {reverse_order(program), forward_order(program), random_order(program, kSeed)})
      for (const char* backend : {"reference", "jit"}) {
        SCOPED_TRACE(order.name + ", " + backend);
        expect_near(run(order, backend), expected);
        if (HasFailure()) return;
      }
  }
}

std::string test_name(const ::testing::TestParamInfo<const OpDef*>& info) {
  return std::string(info.param->name.value);
}

INSTANTIATE_TEST_SUITE_P(All, OpOrders, ::testing::ValuesIn(all_ops().begin(), all_ops().end()), test_name);

}  // namespace
}  // namespace loipe::testing
