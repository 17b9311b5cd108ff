// SPDX-License-Identifier: Apache-2.0
// An einsum is the sum over all labels of the product of its factors, from left to
// right, where all masks hold. Three things make it another op:
//
//   a factor 1, or a mask that always holds, whose labels others have, goes;
//   a single factor is summed over its axes and transposed;
//   without a summed label, and with the factors' axes in the order of the result,
//   it is a product, from left to right again.
#include <algorithm>

#include "ops/op_list.h"
#include "ops/recorded/einsum_spec.h"
#include "ops/shape_checks.h"
#include "passes/algebraic/simplifier.h"

namespace loipe::passes {

namespace {

using namespace ops;

bool has(const std::vector<Label>& labels, Label label) {
  return std::ranges::find(labels, label) != labels.end();
}

bool are_distinct(std::vector<Label> labels) {
  std::ranges::sort(labels);
  return std::ranges::adjacent_find(labels) == labels.end();
}

/// Whether the extents of an operand's labels are known without it.
bool others_have_labels(const EinsumSpec& spec, std::size_t operand) {
  return std::ranges::all_of(spec.operands[operand], [&](Label label) {
    for (std::size_t i = 0; i < spec.operands.size(); ++i)
      if (i != operand && has(spec.operands[i], label)) return true;
    return false;
  });
}

/// The einsum without the first operand that changes nothing.
std::optional<Value> without_neutral(Simplifier& s, const Call& c, const EinsumPlan& plan) {
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    const bool is_only_factor = plan.factors.size() == 1 && plan.factors[0] == i;
    if (is_only_factor || !s.is_uniform(c.operands[i], 1) || !others_have_labels(plan.spec, i)) continue;
    EinsumSpec spec = plan.spec;
    spec.operands.erase(spec.operands.begin() + static_cast<std::ptrdiff_t>(i));
    std::vector<Value> operands(c.operands.begin(), c.operands.end());
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(i));
    return s.emit(op_einsum, operands, {{"spec", spec.print()}});
  }
  return std::nullopt;
}

/// Both sum in the same order if the summed labels, which einsum takes by number,
/// ascend along the axes, which reduce_sum takes from left to right.
std::optional<Value> reduced(Simplifier& s, const Call& c, const EinsumSpec& spec) {
  const std::vector<Label>& labels = spec.operands[0];
  if (!are_distinct(labels)) return std::nullopt;
  std::vector<Label> kept, summed;
  Integers summed_axes, permutation;
  for (std::size_t axis = 0; axis < labels.size(); ++axis) {
    const bool is_kept = has(spec.result, labels[axis]);
    (is_kept ? kept : summed).push_back(labels[axis]);
    if (!is_kept) summed_axes.push_back(static_cast<std::int64_t>(axis));
  }
  if (!std::ranges::is_sorted(summed)) return std::nullopt;
  for (Label label : spec.result) permutation.push_back(std::ranges::find(kept, label) - kept.begin());
  const Value sum = s.emit(op_reduce_sum, {c.operands[0]}, {{"axes", summed_axes}});
  return s.emit(op_transpose, {sum}, {{"permutation", permutation}});
}

/// Whether the factor's axes are some of the result's, in the same order.
bool is_aligned(const std::vector<Label>& labels, const std::vector<Label>& result) {
  auto next = result.begin();
  for (Label label : labels) {
    next = std::find(next, result.end(), label);
    if (next == result.end()) return false;
    ++next;
  }
  return true;
}

/// The factor with an axis of extent 1 for each label that it lacks; a scalar needs none.
Value aligned(Simplifier& s, Value factor, const std::vector<Label>& labels, const EinsumPlan& plan) {
  if (labels.empty()) return factor;
  Shape shape;
  for (Label label : plan.spec.result) shape.push_back(has(labels, label) ? plan.extents[label] : 1);
  return s.emit(op_reshape, {factor}, {{"shape", shape}});
}

std::optional<Value> product(Simplifier& s, const Call& c, const EinsumPlan& plan) {
  const std::vector<Label>& result = plan.spec.result;
  if (plan.labels.size() != result.size()) return std::nullopt;
  for (const std::vector<Label>& labels : plan.spec.operands)
    if (!is_aligned(labels, result)) return std::nullopt;
  Value value = aligned(s, c.operands[0], plan.spec.operands[0], plan);
  for (std::size_t i = 1; i < c.operands.size(); ++i)
    value = s.emit(op_mul, {value, aligned(s, c.operands[i], plan.spec.operands[i], plan)});
  return value;
}

std::optional<Value> einsum(Simplifier& s, const Call& c) {
  std::vector<const TensorType*> types;
  for (Value operand : c.operands) types.push_back(&s.type(operand));
  const EinsumPlan plan(c.attributes.text("spec"), types);
  if (const auto value = without_neutral(s, c, plan)) return value;
  if (!plan.masks.empty()) return std::nullopt;
  return c.operands.size() == 1 ? reduced(s, c, plan.spec) : product(s, c, plan);
}

}  // namespace

std::span<const RuleOfOp> einsum_rules() {
  static constexpr RuleOfOp kRules[] = {{&op_einsum, einsum}};
  return kRules;
}

}  // namespace loipe::passes
