// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/family.h"
#include "ops/shape/moved.h"

namespace loipe::ops {

namespace {

TensorType infer_concatenate(const InferContext& c) {
  expect_attributes(c, {"axis"});
  TensorType type = c.operand(0);
  const std::int64_t axis = c.attributes.integer("axis");
  if (axis < 0 || axis >= type.rank())
    throw UserError("axis=" + std::to_string(axis) + " is not an axis of operands of rank " +
                    std::to_string(type.rank()));
  for (std::size_t k = 1; k < c.operands.size(); ++k) {
    TensorType fitting = c.operand(k);
    if (fitting.rank() == type.rank()) fitting.shape[index_of(axis)] = type.shape[index_of(axis)];
    if (fitting != type)
      throw UserError("operand " + std::to_string(k) + " is " + to_string(c.operand(k)) + ", expected " +
                      to_string(c.operand(0)) + " up to the extent of axis " + std::to_string(axis));
    std::int64_t& extent = type.shape[index_of(axis)];
    if (__builtin_add_overflow(extent, c.operand(k).shape[index_of(axis)], &extent))
      throw UserError("axis " + std::to_string(axis) + " would get an extent that is too large to count");
  }
  return type;
}

Tensor evaluate_concatenate(const EvaluateContext& c) {
  const std::size_t axis = index_of(c.attributes.integer("axis"));
  Tensor result(c.type);
  View target{row_major_strides(c.type.shape)};
  for (const Tensor* part : c.operands) {
    move_elements(part->shape(), *part, {row_major_strides(part->shape())}, result, target);
    target.offset += part->shape()[axis] * target.strides[axis];
  }
  return result;
}

/// A window of the result: along the axis it starts after the operands before it.
LocalJacobian concatenate_jacobian(JacobianContext& c) {
  const std::size_t axis = index_of(c.attributes().integer("axis"));
  std::int64_t start = 0;
  for (std::size_t k = 0; k < c.operand_index; ++k) start += c.operand_type(k).shape[axis];
  TermDraft term;
  const std::vector<Label> labels = term.labels(c.operand_type().shape);
  term.in(labels);
  for (std::size_t k = 0; k < labels.size(); ++k)
    term.out_axis(Coordinate::of(labels[k], 1, k == axis ? start : 0));
  return term.finish(c.builder);
}

std::vector<Sample> concatenate_samples(Rng& rng) {
  std::vector<Sample> samples;
  const auto append = [&](DType dtype, const std::vector<Shape>& shapes, std::int64_t axis) {
    Sample sample{{}, {{"axis", axis}}};
    for (const Shape& shape : shapes)
      sample.operands.push_back(draw_tensor(rng, dtype, shape, small_integer));
    samples.push_back(std::move(sample));
  };
  append(DType::f64, {{3}}, 0);
  append(DType::f64, {{3}, {2}}, 0);
  append(DType::f64, {{1}, {1}, {1}}, 0);
  append(DType::f64, {{2, 3}, {1, 3}}, 0);
  append(DType::f64, {{2, 3}, {2, 1}, {2, 2}}, 1);
  append(DType::f64, {{2, 1, 3}, {2, 2, 3}}, 1);
  append(DType::f64, {{0}, {2}}, 0);
  append(DType::f64, {{0, 2}, {0, 1}}, 1);
  append(DType::i64, {{3}, {2}}, 0);
  append(DType::boolean, {{3}, {2}}, 0);
  return samples;
}

}  // namespace

constinit const OpDef op_concatenate{
    .name = "concatenate",
    .summary = "operands one after the other along an axis",
    .arity = Arity{1, Arity::kVariadic},
    .infer = infer_concatenate,
    .evaluate = evaluate_concatenate,
    .jacobian = concatenate_jacobian,
    .cost = cost_free,
    .samples = concatenate_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "concatenate",
    .onnx_name = "Concat",
};

}  // namespace loipe::ops
