// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/family.h"

namespace loipe::ops {

namespace {

TensorType infer_one_hot(const InferContext& c) {
  expect_attributes(c, {"depth", "dtype"});
  const TensorType& index = c.operand(0);
  const std::int64_t depth = c.attributes.integer("depth");
  const DType dtype = c.attributes.dtype("dtype");
  if (!is_integer(index.dtype))
    throw UserError("the index is " + to_string(index) + ", expected an integer type");
  if (depth < 0) throw UserError("depth is " + std::to_string(depth) + ", expected at least 0");
  if (dtype == DType::boolean) throw UserError("dtype is bool, expected a number type");
  TensorType type{dtype, index.shape};
  type.shape.push_back(depth);
  return type;
}

/// An index outside 0..depth-1 gives a row of zeros.
Tensor evaluate_one_hot(const EvaluateContext& c) {
  Tensor result(c.type);
  const std::int64_t depth = c.type.shape.back();
  for (std::int64_t i = 0; i < c.operand(0).element_count(); ++i) {
    const double index = c.operand(0).at(i);
    if (index >= 0 && index < static_cast<double>(depth))
      result.set(i * depth + static_cast<std::int64_t>(index), 1);
  }
  return result;
}

Value expand_one_hot(const ExpandContext& c) {
  Builder& b = c.builder;
  const TensorType index = b.type(c.operands[0]);
  Shape shape = index.shape;
  shape.push_back(c.attributes.integer("depth"));
  Integers dimensions(index.shape.size());
  for (std::size_t axis = 0; axis < dimensions.size(); ++axis)
    dimensions[axis] = static_cast<std::int64_t>(axis);
  const Value place = iota(b, shape, index.rank(), index.dtype);
  const Value repeated = broadcast_in_dim(b, c.operands[0], shape, dimensions);
  return convert(b, eq(b, place, repeated), c.attributes.dtype("dtype"));
}

std::vector<Sample> one_hot_samples(Rng& rng) {
  std::vector<Sample> samples;
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 2}, Shape{0}})
    for (DType dtype : {DType::i32, DType::i64})
      samples.push_back({{draw_tensor(rng, dtype, shape, small_integer)},
                         {{"depth", std::int64_t{3}}, {"dtype", DType::f64}}});
  return samples;
}

}  // namespace

constinit const OpDef op_one_hot{
    .name = "one_hot",
    .summary = "1 at the index along a new last axis of extent depth, else 0; zeros for an index outside",
    .arity = kUnary,
    .infer = infer_one_hot,
    .evaluate = evaluate_one_hot,
    .jacobian = Differentiation::none("its operand is an integer"),
    .cost = cost_free,
    .samples = one_hot_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "one_hot",
    .onnx_name = "OneHot",
    .expand = expand_one_hot,
};

}  // namespace loipe::ops
