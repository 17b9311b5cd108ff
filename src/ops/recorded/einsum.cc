// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "jacobian/rules.h"
#include "ops/emit.h"
#include "ops/op_list.h"
#include "ops/recorded/einsum_spec.h"
#include "ops/samples.h"
#include "ops/shape_checks.h"
#include "tensor/visit.h"

namespace loipe::ops {

namespace {

TensorType infer_einsum(const InferContext& c) {
  expect_attributes(c, {"spec"});
  const EinsumPlan plan(c.attributes.text("spec"), c.operands);
  TensorType type{c.operand(plan.factors[0]).dtype, {}};
  for (Label label : plan.spec.result) type.shape.push_back(plan.extents[label]);
  return type;
}

std::size_t row(const std::vector<Label>& labels, std::span<const std::int64_t> at, Extents extents) {
  std::int64_t position = 0;
  for (Label label : labels) position = position * extents[label] + at[label];
  return static_cast<std::size_t>(position);
}

/// The definition: one term per assignment of all labels; where a mask is false
/// there is no term, so what it hides is not even multiplied.
Tensor evaluate_einsum(const EvaluateContext& c) {
  std::vector<const TensorType*> types;
  for (const Tensor* operand : c.operands) types.push_back(&operand->type());
  const EinsumPlan plan(c.attributes.text("spec"), types);
  Tensor result(c.type);
  visit_floating(c.type.dtype, [&]<class T>(T) {
    std::vector<std::span<const T>> factors;
    std::vector<std::span<const bool>> masks;
    for (std::size_t i : plan.factors) factors.push_back(c.operand(i).elements<T>());
    for (std::size_t i : plan.masks) masks.push_back(c.operand(i).elements<bool>());
    const std::span<T> out = result.elements<T>();
    for_each_assignment(plan.labels, plan.extents, [&](std::span<const std::int64_t> at) {
      for (std::size_t i = 0; i < masks.size(); ++i)
        if (!masks[i][row(plan.spec.operands[plan.masks[i]], at, plan.extents)]) return;
      T product = 1;
      for (std::size_t i = 0; i < factors.size(); ++i)
        product *= factors[i][row(plan.spec.operands[plan.factors[i]], at, plan.extents)];
      out[row(plan.spec.result, at, plan.extents)] += product;
    });
  });
  return result;
}

OpCost cost_einsum(const CostContext& c) {
  const EinsumPlan plan(c.attributes.text("spec"), c.operands);
  const std::int64_t combinations = plan.combinations();
  return {.multiplications = combinations * (static_cast<std::int64_t>(plan.factors.size()) - 1),
          .additions = std::max<std::int64_t>(combinations - c.type.element_count(), 0)};
}

/// The result is linear in each factor, so the derivative by one is the product of
/// the others, where the masks hold, between the labels of both.
LocalJacobian einsum_jacobian(JacobianContext& c) {
  std::vector<const TensorType*> types;
  for (std::size_t i = 0; i < c.operand_count(); ++i) types.push_back(&c.operand_type(i));
  const EinsumPlan plan(c.attributes().text("spec"), types);
  TermDraft draft;
  std::vector<Label> own(plan.extents.size());
  for (Label label : plan.labels) own[label] = draft.label(plan.extents[label]);
  auto renamed = [&](const std::vector<Label>& labels) {
    std::vector<Label> result;
    for (Label label : labels) result.push_back(own[label]);
    return result;
  };
  draft.out(renamed(plan.spec.result)).in(renamed(plan.spec.operands[c.operand_index]));

  EinsumSpec others, masks;
  std::vector<Value> other_values, mask_values;
  for (std::size_t i = 0; i < c.operand_count(); ++i) {
    if (i == c.operand_index) continue;
    const bool is_mask = c.operand_type(i).dtype == DType::boolean;
    (is_mask ? masks : others).operands.push_back(plan.spec.operands[i]);
    (is_mask ? mask_values : other_values).push_back(c.operand(i));
  }
  if (other_values.size() == 1) {
    draft.value(other_values[0], renamed(others.operands[0]));
  } else if (!other_values.empty()) {
    for (Label label : plan.labels)
      for (const auto& labels : others.operands)
        if (std::find(labels.begin(), labels.end(), label) != labels.end()) {
          others.result.push_back(label);
          break;
        }
    draft.value(c.builder.emit(op_einsum, other_values, {{"spec", others.print()}}), renamed(others.result));
  }
  if (!mask_values.empty()) {
    // All masks over all labels: at least one of them spans the sum in practice.
    Shape shape;
    for (Label label : plan.labels) shape.push_back(plan.extents[label]);
    Value all{};
    for (std::size_t i = 0; i < mask_values.size(); ++i) {
      const std::vector<Coordinate> at = [&] {
        std::vector<Coordinate> coordinates;
        for (Label label : masks.operands[i])
          coordinates.push_back(Coordinate::of(static_cast<Label>(
              std::find(plan.labels.begin(), plan.labels.end(), label) - plan.labels.begin())));
        return coordinates;
      }();
      const Value spread =
          c.builder.emit(op_gather, {mask_values[i]}, {{"extents", shape}, {"from", print_coordinates(at)}});
      all = i == 0 ? spread : logical_and(c.builder, all, spread);
    }
    draft.mask(all, renamed(plan.labels));
  }
  return draft.finish(c.builder);
}

Sample einsum_sample(Rng& rng, const std::string& spec, const std::vector<Shape>& factors,
                     const std::vector<Shape>& masks = {}) {
  Sample sample{{}, {{"spec", spec}}};
  for (const Shape& shape : factors)
    sample.operands.push_back(draw_tensor(rng, DType::f64, shape, between<-2.0, 2.0>));
  for (const Shape& shape : masks)
    sample.operands.push_back(draw_tensor(rng, DType::boolean, shape, boolean));
  return sample;
}

std::vector<Sample> einsum_samples(Rng& rng) {
  return {einsum_sample(rng, "ab,bc->ac", {{2, 3}, {3, 4}}),
          einsum_sample(rng, "ab,ab->", {{2, 3}, {2, 3}}),
          einsum_sample(rng, "xab,xbc->xac", {{2, 2, 3}, {2, 3, 1}}),
          einsum_sample(rng, "a,b->ba", {{2}, {3}}),
          einsum_sample(rng, "aab->b", {{2, 2, 3}}),
          einsum_sample(rng, ",->", {{}, {}}),
          einsum_sample(rng, ",ab->ba", {{}, {2, 3}}),
          einsum_sample(rng, "ab,b,bc->c", {{2, 3}, {3}, {3, 2}}),
          einsum_sample(rng, "ab,bc->ac", {{2, 0}, {0, 3}}),
          einsum_sample(rng, "ab,bc,ab->ac", {{2, 3}, {3, 2}}, {{2, 3}}),
          einsum_sample(rng, "ab,a,b->a", {{3, 2}}, {{3}, {2}})};
}

/// A mask hides an infinity from a zero.
std::vector<Sample> einsum_special_points(Rng&) {
  const double inf = std::numeric_limits<double>::infinity();
  return {{{Tensor::of<double>({2}, {0.0, 2.0}), Tensor::of<double>({2}, {inf, 3.0}),
            Tensor::of<bool>({2}, {false, true})},
           {{"spec", std::string("a,a,a->")}}}};
}

}  // namespace

constinit const OpDef op_einsum{
    .name = "einsum",
    .summary =
        "sum over the labels that the result lacks of the product of the factors, where all masks hold",
    .arity = Arity{1, Arity::kVariadic},
    .infer = infer_einsum,
    .evaluate = evaluate_einsum,
    .jacobian = einsum_jacobian,
    .cost = cost_einsum,
    .samples = einsum_samples,
    .tolerance = Tolerance::arithmetic,
    .special_points = einsum_special_points,
    .onnx_name = "Einsum",
};

}  // namespace loipe::ops
