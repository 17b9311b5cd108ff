// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/scalar.h"
#include "ops/reduction/family.h"

namespace loipe::ops {

namespace {

Tensor evaluate_prod(const EvaluateContext& c) {
  Tensor result(c.type);
  const Shape& shape = c.operand(0).shape();
  const std::array<View, 2> views{View{row_major_strides(shape)},
                                  result_view(c.attributes, shape, c.type.shape)};
  visit_dtype(c.type.dtype, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>) {
      const std::span<const T> in = c.operand(0).elements<T>();
      const std::span<T> out = result.elements<T>();
      std::fill(out.begin(), out.end(), T{1});
      for_each_index(shape, views, [&](const std::array<std::size_t, 2>& at) {
        out[at[1]] = scalar::multiply(out[at[1]], in[at[0]]);
      });
    }
  });
  return result;
}

/// The derivative by one entry is the product of the others: of those before it times
/// of those after it. No division, so zeros need no special case.
LocalJacobian prod_jacobian(JacobianContext& c) {
  Builder& b = c.builder;
  const Shape shape = c.operand_type().shape;
  const Integers axes = c.attributes().integers("axes");
  // [kept..., all reduced axes as one]
  Integers order = kept_axes(axes, shape.size());
  Shape rows;
  for (std::int64_t axis : order) rows.push_back(shape[index_of(axis)]);
  Shape flat = rows;
  flat.push_back(1);
  ReductionLabels labels(c);
  std::vector<Label> value_axes = labels.kept;
  Shape moved_shape = rows;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (!is_reduced(c.attributes(), shape.size())[axis]) continue;
    order.push_back(static_cast<std::int64_t>(axis));
    moved_shape.push_back(shape[axis]);
    value_axes.push_back(labels.all[axis]);
    flat.back() *= shape[axis];
  }
  const Value moved = reshape(b, transpose(b, c.operand(), order), flat);
  const Value others = mul(b, cumprod(b, moved, false, true), cumprod(b, moved, true, true));
  labels.term.value(reshape(b, others, moved_shape), value_axes);
  return labels.term.finish(b);
}

}  // namespace

constinit const OpDef op_reduce_prod{
    .name = "reduce_prod",
    .summary = "product over axes, which the result drops; 1 of nothing",
    .arity = kUnary,
    .infer = infer_reduction,
    .evaluate = evaluate_prod,
    .jacobian = prod_jacobian,
    .cost =
        [](const CostContext& c) {
          return OpCost{.multiplications =
                            std::max<std::int64_t>(c.operand(0).element_count() - c.type.element_count(), 0)};
        },
    .samples = [](Rng& rng) { return reduction_samples(rng, away_from_zero<0.5, 2.0>, true); },
    .tolerance = Tolerance::arithmetic,
    .special_points =
        [](Rng&) {
          const Attributes over_all{{"axes", Integers{0}}};
          return std::vector<Sample>{{{Tensor::of<double>({3}, {2, 0, 3})}, over_all},
                                     {{Tensor::of<double>({3}, {0, 0, 3})}, over_all}};
        },
    .jax_name = "reduce_prod",
    .onnx_name = "ReduceProd",
};

}  // namespace loipe::ops
