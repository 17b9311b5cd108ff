// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "jacobian/rules.h"
#include "ops/op_list.h"
#include "ops/recorded/coordinates.h"
#include "ops/samples.h"
#include "ops/shape_checks.h"
#include "tensor/visit.h"

namespace loipe::ops {

namespace {

TensorType infer_gather(const InferContext& c) {
  expect_attributes(c, {"extents", "from"});
  const Integers& extents = c.attributes.integers("extents");
  element_count(extents);
  checked_coordinates("from", c.attributes.text("from"), c.operand(0).shape.size(), extents, c.operands);
  return {c.operand(0).dtype, extents};
}

std::vector<Label> first_labels(std::size_t count) {
  std::vector<Label> labels;
  for (std::size_t i = 0; i < count; ++i) labels.push_back(static_cast<Label>(i));
  return labels;
}

Tensor evaluate_gather(const EvaluateContext& c) {
  const Integers& extents = c.attributes.integers("extents");
  const Shape& shape = c.operand(0).shape();
  const std::vector<Coordinate> from = parse_coordinates(c.attributes.text("from"));
  Tensor result(c.type);
  visit_dtype(c.type.dtype, [&]<class T>(T) {
    const std::span<const T> source = c.operand(0).elements<T>();
    const std::span<T> out = result.elements<T>();
    std::size_t next = 0;
    for_each_assignment(first_labels(extents.size()), extents, [&](std::span<const std::int64_t> at) {
      std::int64_t position = 0;
      bool is_inside = true;
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const std::int64_t p = evaluated_position(from[axis], at, extents, c.operands, shape[axis]);
        is_inside = is_inside && p >= 0;
        position = position * shape[axis] + p;
      }
      out[next++] = is_inside ? source[static_cast<std::size_t>(position)] : T{0};
    });
  });
  return result;
}

LocalJacobian gather_jacobian(JacobianContext& c) {
  const Integers& extents = c.attributes().integers("extents");
  std::vector<Label> labels(extents.size());
  std::iota(labels.begin(), labels.end(), Label{0});
  return indexed_jacobian(c, IndexedSide::in, c.attributes().text("from"), c.operand_type().shape, labels,
                          extents);
}

Sample gather_sample(Rng& rng, Shape shape, Integers extents, std::string from,
                     std::vector<Tensor> indices = {}) {
  Sample sample{{draw_tensor(rng, DType::f64, std::move(shape), between<-2.0, 2.0>)},
                {{"extents", std::move(extents)}, {"from", std::move(from)}}};
  for (Tensor& index : indices) sample.operands.push_back(std::move(index));
  return sample;
}

std::vector<Sample> gather_samples(Rng& rng) {
  return {gather_sample(rng, {4, 3}, {3, 4}, "b, a"),
          gather_sample(rng, {3, 3}, {3}, "a, a"),
          gather_sample(rng, {12}, {3, 4}, "4*a+b"),
          gather_sample(rng, {7}, {3}, "2*a+1"),
          gather_sample(rng, {2, 3}, {2}, "a, 1"),
          gather_sample(rng, {5}, {3, 3}, "a+b"),
          gather_sample(rng, {5}, {2, 4}, "b"),
          gather_sample(rng, {}, {2}, ""),
          gather_sample(rng, {3}, {0}, "a"),
          gather_sample(rng, {4, 2}, {3, 2}, "#1[a], b", {Tensor::of<std::int64_t>({3}, {3, 0, 3})}),
          gather_sample(rng, {4}, {2, 2}, "#1[b,a]", {Tensor::of<std::int32_t>({2, 2}, {0, 1, 3, 2})})};
}

/// Positions outside the operand read zero.
std::vector<Sample> gather_special_points(Rng&) {
  return {{{Tensor::of<double>({3}, {5, 6, 7}), Tensor::of<std::int64_t>({3}, {-1, 2, 3})},
           {{"extents", Integers{3}}, {"from", std::string("#1[a]")}}}};
}

}  // namespace

constinit const OpDef op_gather{
    .name = "gather",
    .summary = "reads the operand at one coordinate per axis; coordinates are functions of the result's axes",
    .arity = Arity{1, Arity::kVariadic},
    .infer = infer_gather,
    .evaluate = evaluate_gather,
    .jacobian = gather_jacobian,
    .cost = [](const CostContext&) { return OpCost{}; },
    .samples = gather_samples,
    .tolerance = Tolerance::exact,
    .special_points = gather_special_points,
};

}  // namespace loipe::ops
