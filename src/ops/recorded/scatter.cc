// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "jacobian/rules.h"
#include "ops/op_list.h"
#include "ops/recorded/coordinates.h"
#include "ops/samples.h"
#include "ops/shape_checks.h"
#include "tensor/visit.h"

namespace loipe::ops {

namespace {

bool has_base(const Attributes& attributes) { return attributes.has("base"); }

TensorType infer_scatter(const InferContext& c) {
  expect_attributes(c, {"axes", "base", "extents", "shape", "to"});
  const Integers& extents = c.attributes.integers("extents");
  const Integers& axes = c.attributes.integers("axes");
  const TensorType& value = c.operand(0);
  const TensorType type{value.dtype, c.attributes.integers("shape")};
  element_count(extents);
  if (value.dtype == DType::boolean) throw UserError("the value is bool, expected a number type");
  expect_length("axes", axes, value.rank());
  expect_axes("axes", axes, static_cast<std::int64_t>(extents.size()));
  for (std::size_t k = 0; k < axes.size(); ++k)
    if (value.shape[k] != extents[index_of(axes[k])])
      throw UserError("axis " + std::to_string(k) + " of the value has extent " +
                      std::to_string(value.shape[k]) + ", but its label has extent " +
                      std::to_string(extents[index_of(axes[k])]));
  if (has_base(c.attributes)) {
    if (c.attributes.integer("base") != 1 || c.operands.size() < 2)
      throw UserError("base=1 wants the base as operand 1");
    if (c.operand(1) != type)
      throw UserError("the base is " + to_string(c.operand(1)) + ", expected " + to_string(type));
  }
  checked_coordinates("to", c.attributes.text("to"), type.shape.size(), extents, c.operands);
  return type;
}

Tensor evaluate_scatter(const EvaluateContext& c) {
  const Integers& extents = c.attributes.integers("extents");
  const Integers& axes = c.attributes.integers("axes");
  const Shape& shape = c.type.shape;
  const std::vector<Coordinate> to = parse_coordinates(c.attributes.text("to"));
  Tensor result = has_base(c.attributes) ? c.operand(1) : Tensor(c.type);
  std::vector<Label> labels;
  for (std::size_t i = 0; i < extents.size(); ++i) labels.push_back(static_cast<Label>(i));
  visit_dtype(c.type.dtype, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>) {
      const std::span<const T> value = c.operand(0).elements<T>();
      const std::span<T> out = result.elements<T>();
      for_each_assignment(labels, extents, [&](std::span<const std::int64_t> at) {
        std::int64_t source = 0, target = 0;
        for (std::int64_t axis : axes) source = source * extents[index_of(axis)] + at[index_of(axis)];
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
          const std::int64_t p = evaluated_position(to[axis], at, extents, c.operands, shape[axis]);
          if (p < 0) return;
          target = target * shape[axis] + p;
        }
        out[static_cast<std::size_t>(target)] += value[static_cast<std::size_t>(source)];
      });
    }
  });
  return result;
}

/// With a base every scattered element is one addition; without, writing is free.
OpCost cost_scatter(const CostContext& c) {
  if (!has_base(c.attributes)) return {};
  return {.additions = element_count(c.attributes.integers("extents"))};
}

LocalJacobian scatter_jacobian(JacobianContext& c) {
  if (c.operand_index == 1) {
    TermDraft draft;
    const std::vector<Label> labels = draft.labels(c.type().shape);
    return draft.out(labels).in(labels).finish(c.builder);
  }
  const Integers& extents = c.attributes().integers("extents");
  std::vector<Label> axes;
  for (std::int64_t axis : c.attributes().integers("axes")) axes.push_back(static_cast<Label>(axis));
  return indexed_jacobian(c, IndexedSide::out, c.attributes().text("to"), c.type().shape, axes, extents);
}

Sample scatter_sample(Rng& rng, Shape value, Integers axes, Integers extents, std::string to, Shape shape,
                      bool with_base = false, std::vector<Tensor> indices = {}) {
  Sample sample{{draw_tensor(rng, DType::f64, std::move(value), between<-2.0, 2.0>)},
                {{"axes", std::move(axes)}, {"extents", std::move(extents)}, {"to", std::move(to)}}};
  if (with_base) {
    sample.attributes.set("base", std::int64_t{1});
    sample.operands.push_back(draw_tensor(rng, DType::f64, shape, between<-2.0, 2.0>));
  }
  sample.attributes.set("shape", std::move(shape));
  for (Tensor& index : indices) sample.operands.push_back(std::move(index));
  return sample;
}

std::vector<Sample> scatter_samples(Rng& rng) {
  return {scatter_sample(rng, {3}, {0}, {3}, "a, a", {3, 3}),
          scatter_sample(rng, {3}, {0}, {3, 2}, "a, b, b", {3, 2, 2}, true),
          scatter_sample(rng, {2, 3}, {1, 0}, {3, 2}, "2*a+1, b", {7, 2}),
          scatter_sample(rng, {}, {}, {3}, "a, 1", {3, 2}, true),
          scatter_sample(rng, {}, {}, {}, "", {}, true),
          scatter_sample(rng, {3, 3}, {0, 1}, {3, 3}, "a+b", {5}),
          scatter_sample(rng, {0}, {0}, {0}, "a", {2}),
          scatter_sample(rng, {3}, {0}, {3}, "#1[a]", {4}, false, {Tensor::of<std::int64_t>({3}, {2, 0, 2})}),
          scatter_sample(rng, {3}, {0}, {3}, "a, #2[a]", {3, 4}, true,
                         {Tensor::of<std::int32_t>({3}, {3, 0, 3})})};
}

/// Positions outside the result are dropped.
std::vector<Sample> scatter_special_points(Rng&) {
  return {{{Tensor::of<double>({3}, {5, 6, 7}), Tensor::of<std::int64_t>({3}, {1, -1, 5})},
           {{"axes", Integers{0}},
            {"extents", Integers{3}},
            {"shape", Integers{2}},
            {"to", std::string("#1[a]")}}}};
}

}  // namespace

constinit const OpDef op_scatter{
    .name = "scatter",
    .summary = "adds the value at one coordinate per axis of the result, to zero or to a base",
    .arity = Arity{1, Arity::kVariadic},
    .infer = infer_scatter,
    .evaluate = evaluate_scatter,
    .jacobian = scatter_jacobian,
    .cost = cost_scatter,
    .samples = scatter_samples,
    .tolerance = Tolerance::arithmetic,
    .special_points = scatter_special_points,
};

}  // namespace loipe::ops
