// SPDX-License-Identifier: Apache-2.0
#include "ops/reduction/family.h"

namespace loipe::ops {

TensorType infer_reduction(const InferContext& c) {
  expect_attributes(c, {"axes"});
  const TensorType& x = c.operand(0);
  if (x.dtype == DType::boolean) throw UserError("operand has dtype bool, expected a number type");
  const Integers& axes = c.attributes.integers("axes");
  expect_axes("axes", axes, x.rank());
  TensorType type{x.dtype, {}};
  for (std::int64_t axis : kept_axes(axes, x.shape.size())) type.shape.push_back(x.shape[index_of(axis)]);
  return type;
}

TensorType infer_floating_reduction(const InferContext& c) {
  if (!is_floating(c.operand(0).dtype))
    throw UserError("operand has dtype " + std::string(to_string(c.operand(0).dtype)) +
                    ", expected floating point");
  return infer_reduction(c);
}

std::vector<bool> is_reduced(const Attributes& attributes, std::size_t rank) {
  std::vector<bool> reduced(rank, false);
  for (std::int64_t axis : attributes.integers("axes")) reduced[index_of(axis)] = true;
  return reduced;
}

Integers kept_axes(const Integers& axes, std::size_t rank) {
  std::vector<bool> kept(rank, true);
  for (std::int64_t axis : axes) kept[index_of(axis)] = false;
  Integers result;
  for (std::size_t axis = 0; axis < rank; ++axis)
    if (kept[axis]) result.push_back(static_cast<std::int64_t>(axis));
  return result;
}

View result_view(const Attributes& attributes, const Shape& operand, const Shape& result) {
  const std::vector<bool> reduced = is_reduced(attributes, operand.size());
  const Integers strides = row_major_strides(result);
  View view;
  std::size_t kept = 0;
  for (std::size_t axis = 0; axis < operand.size(); ++axis)
    view.strides.push_back(reduced[axis] ? 0 : strides[kept++]);
  return view;
}

std::vector<std::vector<double>> reduced_groups(const EvaluateContext& c) {
  const Shape& shape = c.operand(0).shape();
  std::vector<std::vector<double>> groups(static_cast<std::size_t>(c.type.element_count()));
  for_each_index(shape,
                 std::array{View{row_major_strides(shape)}, result_view(c.attributes, shape, c.type.shape)},
                 [&](const std::array<std::size_t, 2>& at) {
                   groups[at[1]].push_back(c.operand(0).at(static_cast<std::int64_t>(at[0])));
                 });
  return groups;
}

Value spread(Builder& b, Value reduced, const Shape& shape, const Integers& axes) {
  return broadcast_in_dim(b, reduced, shape, kept_axes(axes, shape.size()));
}

ReductionLabels::ReductionLabels(JacobianContext& c) : all(term.labels(c.operand_type().shape)) {
  for (std::int64_t axis : kept_axes(c.attributes().integers("axes"), all.size()))
    kept.push_back(all[index_of(axis)]);
  term.out(kept).in(all);
}

std::vector<Sample> reduction_samples(Rng& rng, Draw draw, bool with_integers) {
  std::vector<Sample> samples;
  const auto append = [&](DType dtype, Shape shape, Integers axes) {
    samples.push_back({{draw_tensor(rng, dtype, std::move(shape), draw)}, {{"axes", std::move(axes)}}});
  };
  append(DType::f64, {}, {});
  append(DType::f64, {4}, {0});
  append(DType::f64, {1}, {0});
  append(DType::f64, {3, 4}, {});
  append(DType::f64, {3, 4}, {0});
  append(DType::f64, {3, 4}, {1});
  append(DType::f64, {3, 4}, {1, 0});
  append(DType::f64, {2, 1, 3}, {0, 2});
  append(DType::f64, {2, 1, 3}, {1});
  append(DType::f64, {0, 3}, {1});
  append(DType::f64, {2, 0}, {1});
  if (!with_integers) return samples;
  append(DType::i32, {3, 4}, {0});
  append(DType::i64, {3, 4}, {0});
  return samples;
}

}  // namespace loipe::ops
