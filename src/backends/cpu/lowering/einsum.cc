// SPDX-License-Identifier: Apache-2.0
// einsum and dot_general.
#include <algorithm>

#include "backends/cpu/lowering/contraction.h"
#include "backends/cpu/lowering/op_lowerings.h"
#include "backends/cpu/steps/masked_sum_step.h"
#include "ops/recorded/einsum_spec.h"
#include "ops/shape_checks.h"

namespace loipe::cpu {

namespace {

EinsumPlan plan_of(const Program& program, Value node) {
  std::vector<const TensorType*> types;
  for (Value operand : program.operands(node)) types.push_back(&program.type(operand));
  return EinsumPlan(program.attributes(node).text("spec"), types);
}

/// Where the labels stand in `order`; those of extent 1 nowhere.
Integers places(const std::vector<Label>& labels, const std::vector<Label>& order, Extents extents) {
  Integers result;
  for (Label label : labels)
    result.push_back(extents[label] == 1 ? kNoAxis : std::ranges::find(order, label) - order.begin());
  return result;
}

/// Nothing is summed: a product element by element, and 0 where a mask is false.
void add_product(Lowering& lowering, Value node, const EinsumPlan& plan) {
  const Program& program = lowering.program();
  const TensorType& type = program.type(node);
  Fusion& fusion = lowering.fusion();
  std::vector<Access> accesses;
  for (std::size_t i = 0; i < program.operands(node).size(); ++i)
    accesses.push_back(
        {program.operands(node)[i], places(plan.spec.operands[i], plan.spec.result, plan.extents)});
  const std::vector<Slot> slots = fusion.operands(type.shape, accesses);
  const bool is_f64 = type.dtype == DType::f64;
  Slot product = slots[plan.factors[0]];
  for (std::size_t i = 1; i < plan.factors.size(); ++i)
    product = fusion.compute(type.shape, Opcode::mul, is_f64, type.dtype,
                             std::array{product, slots[plan.factors[i]]});
  for (std::size_t mask : plan.masks)
    product =
        fusion.compute(type.shape, Opcode::masked, is_f64, type.dtype, std::array{slots[mask], product});
  fusion.define(type.shape, node, product);
}

StridedView along_labels(Lowering& lowering, Value operand, const std::vector<Label>& labels,
                         const std::vector<Label>& order, Extents extents) {
  Shape shape;
  for (Label label : order) shape.push_back(extents[label]);
  return along(lowering.view(operand), shape, places(labels, order, extents));
}

void emit_masked_sum(Lowering& lowering, Value node, const EinsumPlan& plan, const StridedView& out,
                     MaskedResults which) {
  std::vector<StridedView> factors, masks;
  const auto operand = [&](std::size_t i) {
    return along_labels(lowering, lowering.program().operands(node)[i], plan.spec.operands[i], plan.labels,
                        plan.extents);
  };
  for (std::size_t i : plan.factors) factors.push_back(operand(i));
  for (std::size_t i : plan.masks) masks.push_back(operand(i));
  std::vector<StridedView> reads = factors;
  reads.insert(reads.end(), masks.begin(), masks.end());
  if (which == MaskedResults::nan) reads.push_back(out);
  lowering.emit(make_masked_sum_step(std::move(factors), std::move(masks), out, which), reads,
                std::span(&out, 1));
}

/// The first factor that has all labels of the operand; the number of factors where none has.
std::size_t factor_over(const EinsumPlan& plan, std::size_t operand) {
  const auto has_all = [&](std::size_t factor) {
    return std::ranges::all_of(plan.spec.operands[operand], [&](Label label) {
      return std::ranges::find(plan.spec.operands[factor], label) != plan.spec.operands[factor].end();
    });
  };
  return static_cast<std::size_t>(std::ranges::find_if(plan.factors, has_all) - plan.factors.begin());
}

/// A sum with masks as a plain one of factors that are 0 where a mask is false: a hidden term then is 0
/// or, where another factor is infinite or NaN, NaN. Sums that became NaN are formed again without it, so
/// that 0*inf counts for nothing, as it must. False where a mask has labels of several factors.
bool lower_as_plain_sum(Lowering& lowering, Value node, const EinsumPlan& plan) {
  std::vector<std::vector<std::size_t>> masks_of(plan.factors.size());
  for (std::size_t mask : plan.masks) {
    const std::size_t factor = factor_over(plan, mask);
    if (factor == plan.factors.size()) return false;
    masks_of[factor].push_back(mask);
  }
  const Program& program = lowering.program();
  std::vector<Factor> factors;
  for (std::size_t k = 0; k < plan.factors.size(); ++k) {
    const std::size_t operand = plan.factors[k];
    factors.push_back(make_factor(lowering.view(program.operands(node)[operand]), plan.spec.operands[operand],
                                  plan.extents));
    Factor& factor = factors.back();
    std::vector<StridedView> masks;
    for (std::size_t mask : masks_of[k])
      masks.push_back(along_labels(lowering, program.operands(node)[mask], plan.spec.operands[mask],
                                   factor.labels, plan.extents));
    if (!masks.empty()) factor.view = lowering.fusion().masked_copy(factor.view, masks);
  }
  const StridedView out = lowering.define_new(node);
  emit_contraction(lowering, std::move(factors), plan.spec.result, plan.extents, out);
  emit_masked_sum(lowering, node, plan, out, MaskedResults::nan);
  return true;
}

/// Masks over result labels only: what they hide is computed and replaced by 0.
void mask_result(Lowering& lowering, Value node, const EinsumPlan& plan, const StridedView& sum) {
  Fusion& fusion = lowering.fusion();
  const TensorType& type = lowering.program().type(node);
  Slot result = fusion.input(type.shape, sum);
  for (std::size_t i : plan.masks) {
    const StridedView mask = along_labels(lowering, lowering.program().operands(node)[i],
                                          plan.spec.operands[i], plan.spec.result, plan.extents);
    result = fusion.compute(type.shape, Opcode::masked, type.dtype == DType::f64, type.dtype,
                            std::array{fusion.input(type.shape, mask), result});
  }
  fusion.define(type.shape, node, result);
}

bool masks_a_sum(const EinsumPlan& plan) {
  return std::ranges::any_of(plan.masks, [&](std::size_t mask) {
    return std::ranges::any_of(plan.spec.operands[mask], [&](Label label) {
      return std::ranges::find(plan.spec.result, label) == plan.spec.result.end();
    });
  });
}

void lower_contraction(Lowering& lowering, Value node) {
  const Program& program = lowering.program();
  const EinsumPlan plan = plan_of(program, node);
  if (masks_a_sum(plan)) {
    if (!lower_as_plain_sum(lowering, node, plan))
      emit_masked_sum(lowering, node, plan, lowering.define_new(node), MaskedResults::all);
    return;
  }
  std::vector<Factor> factors;
  for (std::size_t i : plan.factors)
    factors.push_back(
        make_factor(lowering.view(program.operands(node)[i]), plan.spec.operands[i], plan.extents));
  const TensorType& type = program.type(node);
  const StridedView out =
      plan.masks.empty() ? lowering.define_new(node) : lowering.temporary(type.dtype, type.shape);
  emit_contraction(lowering, std::move(factors), plan.spec.result, plan.extents, out);
  if (!plan.masks.empty()) mask_result(lowering, node, plan, out);
}

/// One factor, nothing summed: its axes in another order, or a diagonal.
void lower_as_view(Lowering& lowering, Value node) {
  const EinsumPlan plan = plan_of(lowering.program(), node);
  lowering.define(node, along_labels(lowering, lowering.program().operands(node)[0], plan.spec.operands[0],
                                     plan.spec.result, plan.extents));
}

void lower_dot(Lowering& lowering, Value node) {
  const Program& program = lowering.program();
  const Attributes& attributes = program.attributes(node);
  const Value lhs = program.operands(node)[0], rhs = program.operands(node)[1];
  const std::size_t lhs_rank = program.shape(lhs).size(), rhs_rank = program.shape(rhs).size();
  Integers extents = program.shape(lhs);
  extents.insert(extents.end(), program.shape(rhs).begin(), program.shape(rhs).end());
  std::vector<Label> lhs_labels(lhs_rank), rhs_labels(rhs_rank), result;
  for (std::size_t i = 0; i < lhs_rank; ++i) lhs_labels[i] = static_cast<Label>(i);
  for (std::size_t i = 0; i < rhs_rank; ++i) rhs_labels[i] = static_cast<Label>(lhs_rank + i);
  std::vector<bool> is_contracted(lhs_rank, false), is_batch(lhs_rank, false);
  const auto pair = [&](const char* kind, std::vector<bool>& is_kind) {
    const Integers left = ops::integers_or(attributes, std::string("lhs_") + kind, {});
    const Integers right = ops::integers_or(attributes, std::string("rhs_") + kind, {});
    for (std::size_t i = 0; i < left.size(); ++i) {
      rhs_labels[ops::index_of(right[i])] = static_cast<Label>(left[i]);
      is_kind[ops::index_of(left[i])] = true;
    }
    return left;
  };
  pair("contract", is_contracted);
  for (std::int64_t axis : pair("batch", is_batch)) result.push_back(static_cast<Label>(axis));
  for (Label label : lhs_labels)
    if (!is_batch[label] && !is_contracted[label]) result.push_back(label);
  for (Label label : rhs_labels)
    if (label >= lhs_rank) result.push_back(label);
  std::vector<Factor> factors{make_factor(lowering.view(lhs), lhs_labels, extents),
                              make_factor(lowering.view(rhs), rhs_labels, extents)};
  emit_contraction(lowering, std::move(factors), result, extents, lowering.define_new(node));
}

}  // namespace

void lower_einsum(Lowering& lowering, Value node) {
  const EinsumPlan plan = plan_of(lowering.program(), node);
  if (plan.labels.size() > plan.spec.result.size()) lowering.lower_in_memory(node, lower_contraction);
  else if (plan.factors.size() == 1 && plan.masks.empty()) lowering.lower_in_memory(node, lower_as_view);
  else add_product(lowering, node, plan);
}

void lower_dot_general(Lowering& lowering, Value node) {
  const bool has_kernels = is_floating(lowering.program().type(node).dtype);
  lowering.lower_in_memory(node, has_kernels ? lower_dot : lower_by_reference);
}

}  // namespace loipe::cpu
