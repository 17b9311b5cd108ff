// SPDX-License-Identifier: Apache-2.0
// From a raw term to normal form: see the list N1 to N6 in local_jacobian.h.
#include <algorithm>

#include "base/check.h"
#include "jacobian/raw_term.h"

namespace loipe {

namespace {

bool has(const std::vector<Label>& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::vector<Label> sorted_union(std::vector<Label> a, const std::vector<Label>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  a.erase(std::unique(a.begin(), a.end()), a.end());
  return a;
}

/// The access as a value with one bare label per axis: unchanged, squeezed of
/// axes of extent 1, or gathered (slices, diagonals, splits, tables).
LabelledValue settled(Recorder& recorder, const Access& access, Extents extents) {
  const Shape shape = recorder.type(access.value).shape;
  LabelledValue result{access.value, {}, access.kind};
  Shape squeezed;
  bool is_plain = true;
  std::vector<Label> all;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const Coordinate& at = access.at[axis];
    all = sorted_union(all, labels_of(at));
    if (shape[axis] == 1 && at.is_fixed()) continue;
    if (!is_bare(at, shape[axis], extents) || has(result.axes, at.label())) {
      is_plain = false;
      continue;
    }
    result.axes.push_back(at.label());
    squeezed.push_back(shape[axis]);
  }
  if (is_plain) {
    result.value = recorder.reshape(access.value, squeezed);
    return result;
  }
  return {recorder.gather(access.value, access.at, all, extents), all, access.kind};
}

/// Sums a value over those of its labels that are not in `kept`.
LabelledValue summed(Recorder& recorder, const LabelledValue& value, const std::vector<Label>& kept) {
  Integers axes;
  LabelledValue result;
  for (std::size_t axis = 0; axis < value.axes.size(); ++axis) {
    if (has(kept, value.axes[axis])) result.axes.push_back(value.axes[axis]);
    else axes.push_back(static_cast<std::int64_t>(axis));
  }
  if (axes.empty()) return value;
  const std::int64_t before = recorder.type(value.value).element_count();
  result.value = recorder.reduce_sum(value.value, axes);
  recorder.count(0, before - recorder.type(result.value).element_count());
  return result;
}

/// The arithmetic part of a term: everything but its coordinates.
struct Factors {
  std::vector<LabelledValue> values;
  std::vector<LabelledValue> masks;
  std::vector<Label> axis_labels;  ///< labels that stand in a coordinate

  /// Labels that operand `skip` must keep: those in axes and in the other operands.
  std::vector<Label> needed_beside(std::size_t skip) const {
    std::vector<Label> labels = axis_labels;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (i != skip) labels = sorted_union(labels, values[i].axes);
    for (const LabelledValue& mask : masks) labels = sorted_union(labels, mask.axes);
    return labels;
  }
};

void widen(Recorder& recorder, std::vector<LabelledValue>& values) {
  bool any_f64 = false;
  for (const LabelledValue& v : values) any_f64 = any_f64 || recorder.type(v.value).dtype == DType::f64;
  if (any_f64)
    for (LabelledValue& v : values) v.value = recorder.convert(v.value, DType::f64);
}

/// The value with zeros where the mask hides it; the value has all labels of the mask.
void apply(Recorder& recorder, const LabelledValue& mask, LabelledValue& value) {
  const Value zero = recorder.scalar(0, recorder.type(value.value).dtype);
  value.value = recorder.select(recorder.aligned(mask, value.axes), value.value, zero);
}

/// A product that is larger than both of its factors: it is better not formed. Those that rules give are
/// finite, and 0 where the rule's own mask hides them.
bool is_outer_product(const Program& program, Value value) {
  const std::string_view op = program.op(value).name.value;
  const std::int64_t count = program.type(value).element_count();
  return (op == "einsum" || op == "mul" || op == "dot_general") &&
         std::ranges::all_of(program.operands(value),
                             [&](Value v) { return program.type(v).element_count() < count; });
}

/// Soft masks that have a summed label become zeros of all factors that have all their labels
/// (each of them may be infinite or NaN where the mask hides it): then the sum is an ordinary one,
/// which may be a matrix product or be done in another order. What is left of the mask is where
/// any term of the sum exists.
void apply_soft_masks(Recorder& recorder, Factors& factors) {
  for (LabelledValue& mask : factors.masks) {
    const auto is_summed = [&](Label label) { return !has(factors.axis_labels, label); };
    if (mask.kind != MaskKind::soft || std::none_of(mask.axes.begin(), mask.axes.end(), is_summed)) continue;
    const auto has_all = [&](const LabelledValue& v) {
      return std::all_of(mask.axes.begin(), mask.axes.end(), [&](Label label) { return has(v.axes, label); });
    };
    const auto is_outer = [&](const LabelledValue& v) {
      return is_outer_product(recorder.builder().program(), v.value);
    };
    const bool all_are_outer = std::ranges::all_of(
        factors.values, [&](const LabelledValue& v) { return !has_all(v) || is_outer(v); });
    bool is_applied = false;
    for (LabelledValue& v : factors.values)
      if (has_all(v) && (all_are_outer || !is_outer(v))) {
        apply(recorder, mask, v);
        is_applied = true;
      }
    if (is_applied) mask = recorder.any(mask, factors.axis_labels);
  }
}

/// Takes the masks that have a summed label out of the list, and leaves there where any term of
/// the sum exists: a sum of none is no entry, whatever later factors hold.
std::vector<LabelledValue> take_summed_masks(Recorder& recorder, Factors& factors) {
  std::vector<LabelledValue> summed_masks;
  for (LabelledValue& mask : factors.masks) {
    if (std::all_of(mask.axes.begin(), mask.axes.end(),
                    [&](Label label) { return has(factors.axis_labels, label); }))
      continue;
    summed_masks.push_back(mask);
    mask = recorder.any(mask, factors.axis_labels);
  }
  return summed_masks;
}

/// Same axes in the same order: the product is elementwise.
LabelledValue multiplied(Recorder& recorder, const LabelledValue& a, const LabelledValue& b,
                         const std::vector<Label>& result) {
  if (a.axes.empty() && b.axes.empty()) return {recorder.multiply(a.value, b.value), {}};
  const std::vector<LabelledValue> both{a, b};
  return recorder.einsum(both, {}, result);
}

/// One value for the product of all: one-sided sums first, then one masked or
/// plain sum of products over the labels that are in no coordinate.
std::optional<LabelledValue> combined(Recorder& recorder, Factors& factors, Extents extents) {
  apply_soft_masks(recorder, factors);
  for (std::size_t i = 0; i < factors.values.size(); ++i)
    factors.values[i] = summed(recorder, factors.values[i], factors.needed_beside(i));
  std::vector<LabelledValue> summed_masks = take_summed_masks(recorder, factors);
  if (factors.values.empty() && !summed_masks.empty()) {
    // A count of true entries: small integers, exact in f32.
    LabelledValue ones = summed_masks.back();
    summed_masks.pop_back();
    ones.value = recorder.convert(ones.value, DType::f32);
    factors.values.push_back(ones);
  }
  if (factors.values.empty()) return std::nullopt;
  if (factors.values.size() == 1 && summed_masks.empty())
    return summed(recorder, factors.values[0], factors.axis_labels);

  widen(recorder, factors.values);
  std::vector<Label> all, result;
  for (const LabelledValue& v : factors.values) all = sorted_union(all, v.axes);
  for (const LabelledValue& m : summed_masks) all = sorted_union(all, m.axes);
  for (Label label : all)
    if (has(factors.axis_labels, label)) result.push_back(label);
  const std::int64_t products = count_assignments(all, extents);
  const auto value_count = static_cast<std::int64_t>(factors.values.size());
  recorder.count(products * (value_count - 1), products - count_assignments(result, extents));
  if (summed_masks.empty() && value_count == 2)
    return multiplied(recorder, factors.values[0], factors.values[1], result);
  return recorder.einsum(factors.values, summed_masks, result);
}

std::optional<LabelledValue> intersected(Recorder& recorder, const std::vector<LabelledValue>& masks) {
  if (masks.empty()) return std::nullopt;
  LabelledValue result = masks[0];
  for (std::size_t i = 1; i < masks.size(); ++i) {
    if (masks[i] == result) continue;
    const std::vector<Label> labels = sorted_union(result.axes, masks[i].axes);
    const bool both_soft = result.kind == MaskKind::soft && masks[i].kind == MaskKind::soft;
    result = {recorder.logical_and(recorder.aligned(result, labels), recorder.aligned(masks[i], labels)),
              labels, both_soft ? MaskKind::soft : MaskKind::hard};
  }
  return result;
}

/// Numbers labels by first appearance in out, then in (N5).
void renumber(Term& term, const std::vector<std::int64_t>& old_extents) {
  constexpr Label kNone = ~Label{0};
  std::vector<Label> renamed(old_extents.size(), kNone);
  auto visit = [&](Label& label) {
    if (renamed[label] == kNone) {
      renamed[label] = static_cast<Label>(term.extents.size());
      term.extents.push_back(old_extents[label]);
    }
    label = renamed[label];
  };
  for (auto* list : {&term.out, &term.in})
    for (Coordinate& coordinate : *list) {
      for (Stride& s : coordinate.strides) visit(s.label);
      if (coordinate.index)
        for (Label& label : coordinate.index->labels) visit(label);
    }
  for (auto* labelled : {&term.value, &term.mask})
    if (*labelled)
      for (Label& label : (*labelled)->axes) label = renamed[label];
}

}  // namespace

std::optional<Term> RawTerm::normalised(Recorder& recorder) && {
  for (Label label = 0; label < extents.size(); ++label) {
    if (!is_live[label]) continue;
    if (extents[label] == 0) return std::nullopt;
    if (extents[label] == 1) substitute(recorder.builder(), label, Coordinate::fixed(0));
  }
  visit_coordinates([&](Coordinate& coordinate) { coordinate = simplified(coordinate, extents); });

  Factors factors;
  for (auto* list : {&out, &in})
    for (const Coordinate& coordinate : *list)
      factors.axis_labels = sorted_union(factors.axis_labels, labels_of(coordinate));
  for (const Access& access : values) factors.values.push_back(settled(recorder, access, extents));
  for (const Access& access : masks) factors.masks.push_back(settled(recorder, access, extents));

  for (Label label = 0; label < extents.size(); ++label)  // a label that stands nowhere is a factor
    if (is_live[label] && !has(factors.needed_beside(factors.values.size()), label))
      coefficient *= static_cast<double>(extents[label]);

  Term term;
  term.value = combined(recorder, factors, extents);
  term.mask = intersected(recorder, factors.masks);
  term.out = std::move(out);
  term.in = std::move(in);
  term.coefficient = coefficient;
  if (coefficient == 0) return std::nullopt;
  if (term.value && std::abs(coefficient) != 1) {
    const TensorType type = recorder.type(term.value->value);
    term.value->value = recorder.multiply(term.value->value, recorder.scalar(coefficient, type.dtype));
    recorder.count(type.element_count(), 0);
    term.coefficient = 1;
  }
  renumber(term, extents);
  return term;
}

}  // namespace loipe
