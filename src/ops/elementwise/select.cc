// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/family.h"

namespace loipe::ops {

namespace {

TensorType infer_select(const InferContext& c) {
  expect_attributes(c, {});
  const TensorType &condition = c.operand(0), &on_true = c.operand(1), &on_false = c.operand(2);
  if (condition.dtype != DType::boolean)
    throw UserError("the condition has dtype " + std::string(to_string(condition.dtype)) + ", expected bool");
  if (on_true.dtype != on_false.dtype)
    throw UserError("the branches have dtypes " + std::string(to_string(on_true.dtype)) + " and " +
                    std::string(to_string(on_false.dtype)) +
                    ", expected one dtype (convert_element_type converts)");
  return {on_true.dtype, broadcast_shape(c.operands)};
}

Tensor evaluate_select(const EvaluateContext& c) {
  Tensor result(c.type);
  const std::span<const bool> condition = c.operand(0).elements<bool>();
  const std::array<View, 3> views{broadcast_view(c.operand(0).shape(), c.type.shape),
                                  broadcast_view(c.operand(1).shape(), c.type.shape),
                                  broadcast_view(c.operand(2).shape(), c.type.shape)};
  visit_dtype(c.type.dtype, [&]<class T>(T) {
    const std::span<const T> on_true = c.operand(1).elements<T>(), on_false = c.operand(2).elements<T>();
    const std::span<T> out = result.elements<T>();
    std::size_t position = 0;
    for_each_index(c.type.shape, views, [&](const std::array<std::size_t, 3>& at) {
      out[position++] = condition[at[0]] ? on_true[at[1]] : on_false[at[2]];
    });
  });
  return result;
}

/// 1 where the operand is the one taken; the other entries do not exist.
LocalJacobian select_jacobian(JacobianContext& c) {
  const Value condition = c.operand(0);
  return diagonal(c, Partial(1).where(c.operand_index == 1 ? condition : logical_not(c.builder, condition)));
}

std::vector<Sample> select_samples(Rng& rng) {
  std::vector<Sample> samples;
  const Draw draws[] = {boolean, between<-2.0, 2.0>, between<-2.0, 2.0>};
  for (DType dtype : {DType::f64, DType::i32, DType::boolean}) {
    const DType dtypes[] = {DType::boolean, dtype, dtype};
    for (Sample& sample : elementwise_samples(rng, dtypes, draws)) samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace

constinit const OpDef op_select{
    .name = "select",
    .summary = "on_true where the condition holds, else on_false; operands condition, on_true, on_false",
    .arity = kTernary,
    .infer = infer_select,
    .evaluate = evaluate_select,
    .jacobian = select_jacobian,
    .cost = cost_free,
    .samples = select_samples,
    .tolerance = Tolerance::exact,
    // A branch that is not taken contributes nothing, whatever it holds.
    .special_points =
        [](Rng&) {
          return std::vector{
              Sample{{Tensor::scalar(true), Tensor::scalar(1.0), Tensor::scalar(std::nan(""))}, {}},
              Sample{{Tensor::scalar(false), Tensor::scalar(std::nan("")), Tensor::scalar(1.0)}, {}}};
        },
    .jax_name = "select_n",
    .onnx_name = "Where",
};

}  // namespace loipe::ops
