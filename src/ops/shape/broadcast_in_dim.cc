// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/family.h"
#include "ops/shape/moved.h"

namespace loipe::ops {

namespace {

TensorType infer_broadcast(const InferContext& c) {
  expect_attributes(c, {"dimensions", "shape"});
  const TensorType& x = c.operand(0);
  const Integers& dimensions = c.attributes.integers("dimensions");
  const TensorType type{x.dtype, c.attributes.integers("shape")};
  element_count(type.shape);
  expect_length("dimensions", dimensions, x.rank());
  for (std::size_t axis = 0; axis < dimensions.size(); ++axis) {
    if (dimensions[axis] < 0 || dimensions[axis] >= type.rank())
      throw UserError(quoted("dimensions", dimensions) + " names axis " + std::to_string(dimensions[axis]) +
                      ", but shape=" + to_string(type.shape) + " has rank " + std::to_string(type.rank()));
    if (axis > 0 && dimensions[axis] <= dimensions[axis - 1])
      throw UserError(quoted("dimensions", dimensions) + " must increase (transpose reorders axes)");
    const std::int64_t extent = type.shape[index_of(dimensions[axis])];
    if (x.shape[axis] != extent && x.shape[axis] != 1)
      throw UserError("axis " + std::to_string(axis) + " of extent " + std::to_string(x.shape[axis]) +
                      " does not broadcast to extent " + std::to_string(extent) + ", expected 1 or " +
                      std::to_string(extent));
  }
  return type;
}

Tensor evaluate_broadcast(const EvaluateContext& c) {
  const Shape& shape = c.operand(0).shape();
  const Integers strides = row_major_strides(shape);
  const Integers& dimensions = c.attributes.integers("dimensions");
  View view{Integers(c.type.shape.size(), 0)};
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] != 1) view.strides[index_of(dimensions[axis])] = strides[axis];
  return read_along(c.operand(0), view, c.type);
}

/// The operand's axes are a part of the result's; the others are free.
LocalJacobian broadcast_jacobian(JacobianContext& c) {
  TermDraft term;
  const std::vector<Label> out = term.labels(c.type().shape);
  term.out(out);
  const Shape& shape = c.operand_type().shape;
  const Integers& dimensions = c.attributes().integers("dimensions");
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    term.in_axis(shape[axis] == 1 ? Coordinate::fixed(0) : Coordinate::of(out[index_of(dimensions[axis])]));
  return term.finish(c.builder);
}

std::vector<Sample> broadcast_samples(Rng& rng) {
  std::vector<Sample> samples;
  const auto append = [&](DType dtype, Shape operand, Shape shape, Integers dimensions) {
    samples.push_back({{draw_tensor(rng, dtype, std::move(operand), small_integer)},
                       {{"shape", std::move(shape)}, {"dimensions", std::move(dimensions)}}});
  };
  append(DType::f64, {}, {}, {});
  append(DType::f64, {}, {2, 3}, {});
  append(DType::f64, {3}, {2, 3}, {1});
  append(DType::f64, {2}, {2, 3}, {0});
  append(DType::f64, {1}, {2, 3}, {0});
  append(DType::f64, {2, 1}, {2, 4, 3}, {0, 2});
  append(DType::f64, {2, 3}, {2, 1, 3}, {0, 2});
  append(DType::f64, {3}, {0, 3}, {1});
  append(DType::f64, {0}, {0, 3}, {0});
  append(DType::f64, {1}, {0}, {0});
  append(DType::i64, {3}, {2, 3}, {1});
  append(DType::boolean, {3}, {2, 3}, {1});
  return samples;
}

}  // namespace

constinit const OpDef op_broadcast_in_dim{
    .name = "broadcast_in_dim",
    .summary = "x repeated to a shape: axis k of x lies along axis dimensions[k]",
    .arity = kUnary,
    .infer = infer_broadcast,
    .evaluate = evaluate_broadcast,
    .jacobian = broadcast_jacobian,
    .cost = cost_free,
    .samples = broadcast_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "broadcast_in_dim",
    .onnx_name = "Expand",
};

}  // namespace loipe::ops
