// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/family.h"
#include "ops/shape/moved.h"

namespace loipe::ops {

namespace {

TensorType infer_transpose(const InferContext& c) {
  expect_attributes(c, {"permutation"});
  const TensorType& x = c.operand(0);
  const Integers& permutation = c.attributes.integers("permutation");
  expect_length("permutation", permutation, x.rank());
  expect_axes("permutation", permutation, x.rank());
  TensorType type{x.dtype, {}};
  for (std::int64_t axis : permutation) type.shape.push_back(x.shape[index_of(axis)]);
  return type;
}

Tensor evaluate_transpose(const EvaluateContext& c) {
  const Integers strides = row_major_strides(c.operand(0).shape());
  View view;
  for (std::int64_t axis : c.attributes.integers("permutation"))
    view.strides.push_back(strides[index_of(axis)]);
  return read_along(c.operand(0), view, c.type);
}

LocalJacobian transpose_jacobian(JacobianContext& c) {
  TermDraft term;
  const std::vector<Label> in = term.labels(c.operand_type().shape);
  std::vector<Label> out;
  for (std::int64_t axis : c.attributes().integers("permutation")) out.push_back(in[index_of(axis)]);
  return term.out(out).in(in).finish(c.builder);
}

std::vector<Sample> transpose_samples(Rng& rng) {
  std::vector<Sample> samples;
  const auto append = [&](DType dtype, Shape shape, Integers permutation) {
    samples.push_back({{draw_tensor(rng, dtype, std::move(shape), small_integer)},
                       {{"permutation", std::move(permutation)}}});
  };
  append(DType::f64, {}, {});
  append(DType::f64, {3}, {0});
  append(DType::f64, {2, 3}, {1, 0});
  append(DType::f64, {2, 2}, {1, 0});
  append(DType::f64, {2, 1, 3}, {2, 0, 1});
  append(DType::f64, {2, 3, 2, 2}, {1, 3, 0, 2});
  append(DType::f64, {0, 2}, {1, 0});
  append(DType::boolean, {2, 3}, {1, 0});
  append(DType::i32, {2, 3}, {1, 0});
  return samples;
}

}  // namespace

constinit const OpDef op_transpose{
    .name = "transpose",
    .summary = "axes reordered: axis k of the result is axis permutation[k] of x",
    .arity = kUnary,
    .infer = infer_transpose,
    .evaluate = evaluate_transpose,
    .jacobian = transpose_jacobian,
    .cost = cost_free,
    .samples = transpose_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "transpose",
    .onnx_name = "Transpose",
};

}  // namespace loipe::ops
