// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/elementwise/family.h"
#include "ops/shape/moved.h"

namespace loipe::ops {

namespace {

bool is_reversed(const Attributes& attributes, std::size_t axis) {
  return std::ranges::count(attributes.integers("axes"), static_cast<std::int64_t>(axis)) != 0;
}

TensorType infer_reverse(const InferContext& c) {
  expect_attributes(c, {"axes"});
  expect_axes("axes", c.attributes.integers("axes"), c.operand(0).rank());
  return c.operand(0);
}

Tensor evaluate_reverse(const EvaluateContext& c) {
  View view{row_major_strides(c.type.shape)};
  for (std::int64_t axis : c.attributes.integers("axes")) {
    std::int64_t& stride = view.strides[index_of(axis)];
    view.offset += stride * (c.type.shape[index_of(axis)] - 1);
    stride = -stride;
  }
  return read_along(c.operand(0), view, c.type);
}

/// Entry i comes from entry extent - 1 - i.
std::vector<Coordinate> places(const Attributes& attributes, const Shape& shape) {
  std::vector<Coordinate> from;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const auto label = static_cast<Label>(axis);
    from.push_back(is_reversed(attributes, axis) ? Coordinate::of(label, -1, shape[axis] - 1)
                                                 : Coordinate::of(label));
  }
  return from;
}

LocalJacobian reverse_jacobian(JacobianContext& c) {
  TermDraft term;
  term.out(term.labels(c.type().shape));
  for (const Coordinate& coordinate : places(c.attributes(), c.type().shape)) term.in_axis(coordinate);
  return term.finish(c.builder);
}

Value expand_reverse(const ExpandContext& c) {
  const Shape shape = c.builder.shape(c.operands[0]);
  return c.builder.emit(op_gather, {c.operands[0]},
                        {{"extents", shape}, {"from", print_coordinates(places(c.attributes, shape))}});
}

std::vector<Sample> reverse_samples(Rng& rng) {
  std::vector<Sample> samples;
  const auto append = [&](DType dtype, Shape shape, Integers axes) {
    samples.push_back(
        {{draw_tensor(rng, dtype, std::move(shape), small_integer)}, {{"axes", std::move(axes)}}});
  };
  append(DType::f64, {}, {});
  append(DType::f64, {4}, {0});
  append(DType::f64, {2, 3}, {});
  append(DType::f64, {2, 3}, {1});
  append(DType::f64, {2, 3, 1}, {2, 0, 1});
  append(DType::f64, {0, 2}, {0});
  append(DType::boolean, {3}, {0});
  append(DType::i32, {2, 3}, {0});
  return samples;
}

}  // namespace

constinit const OpDef op_reverse{
    .name = "reverse",
    .summary = "the entries along axes in the opposite order",
    .arity = kUnary,
    .infer = infer_reverse,
    .evaluate = evaluate_reverse,
    .jacobian = reverse_jacobian,
    .cost = cost_free,
    .samples = reverse_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "rev",
    .expand = expand_reverse,
};

}  // namespace loipe::ops
