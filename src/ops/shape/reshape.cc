// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/elementwise/family.h"
#include "ops/shape/reshape_groups.h"

namespace loipe::ops {

namespace {

TensorType infer_reshape(const InferContext& c) {
  expect_attributes(c, {"shape"});
  const TensorType& x = c.operand(0);
  const TensorType type{x.dtype, c.attributes.integers("shape")};
  if (type.element_count() != x.element_count())
    throw UserError("shape=" + to_string(type.shape) + " holds " + std::to_string(type.element_count()) +
                    " elements, expected the operand's " + std::to_string(x.element_count()));
  return type;
}

Tensor evaluate_reshape(const EvaluateContext& c) {
  Tensor result(c.type);
  const std::span<const std::byte> bytes = c.operand(0).bytes();
  if (!bytes.empty()) std::memcpy(result.bytes().data(), bytes.data(), bytes.size());
  return result;
}

/// Decodes the position t within a group into a position along each of its axes:
/// (t / stride) mod extent, as index arrays over the one label t.
void decode_axes(const Shape& shape, ReshapeGroup::Axes axes, std::int64_t group_extent, Label t,
                 std::vector<Coordinate>& coordinates) {
  std::int64_t stride = 1;
  for (std::size_t axis = axes.last; axis-- > axes.first;) {
    auto numbers = std::make_shared<std::vector<std::int64_t>>();
    for (std::int64_t position = 0; position < group_extent; ++position)
      numbers->push_back(position / stride % shape[axis]);
    coordinates[axis].index = IndexArray{{t}, std::move(numbers), {}};
    stride *= shape[axis];
  }
}

/// A value-free relabelling. A group with common digits has one label per digit
/// and affine axes on both sides, which every product can split and merge; a
/// group without has one label for its elements and index arrays.
LocalJacobian reshape_jacobian(JacobianContext& c) {
  const Shape &in_shape = c.operand_type().shape, &out_shape = c.type().shape;
  if (element_count(in_shape) == 0) return LocalJacobian::zero();
  TermDraft term;
  std::vector<Coordinate> in(in_shape.size()), out(out_shape.size());
  for (const ReshapeGroup& group : reshape_groups(in_shape, out_shape)) {
    for (const ReshapeGroup::Digit& digit : group.digits) {
      const Label label = term.label(digit.extent);
      in[digit.in_axis].strides.push_back({label, digit.in_stride});
      out[digit.out_axis].strides.push_back({label, digit.out_stride});
    }
    if (group.digits.empty()) {
      const Label t = term.label(group.extent);
      decode_axes(in_shape, group.in, group.extent, t, in);
      decode_axes(out_shape, group.out, group.extent, t, out);
    }
  }
  for (Coordinate& axis : in) term.in_axis(std::move(axis));
  for (Coordinate& axis : out) term.out_axis(std::move(axis));
  return term.finish(c.builder);
}

std::vector<Sample> reshape_samples(Rng& rng) {
  std::vector<Sample> samples;
  const auto append = [&](DType dtype, Shape operand, Shape shape) {
    samples.push_back(
        {{draw_tensor(rng, dtype, std::move(operand), small_integer)}, {{"shape", std::move(shape)}}});
  };
  append(DType::f64, {}, {});
  append(DType::f64, {}, {1, 1});
  append(DType::f64, {1}, {});
  append(DType::f64, {2, 3}, {6});
  append(DType::f64, {6}, {3, 2});
  append(DType::f64, {2, 3}, {2, 1, 3});
  append(DType::f64, {4, 6}, {4, 2, 3});
  append(DType::f64, {2, 2, 3}, {4, 3});
  append(DType::f64, {2, 6}, {4, 3});
  append(DType::f64, {4, 6}, {6, 4});
  append(DType::f64, {2, 3}, {3, 2});
  append(DType::f64, {2, 3, 2}, {2, 2, 3});
  append(DType::f64, {3, 1, 2, 5}, {2, 3, 5});
  append(DType::f64, {0, 3}, {5, 0});
  append(DType::i32, {2, 3}, {6});
  append(DType::boolean, {2, 3}, {6});
  return samples;
}

}  // namespace

constinit const OpDef op_reshape{
    .name = "reshape",
    .summary = "the same elements in row-major order under another shape",
    .arity = kUnary,
    .infer = infer_reshape,
    .evaluate = evaluate_reshape,
    .jacobian = reshape_jacobian,
    .cost = cost_free,
    .samples = reshape_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "reshape",
    .onnx_name = "Reshape",
};

}  // namespace loipe::ops
