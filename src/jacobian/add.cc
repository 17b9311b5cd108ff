// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "jacobian/arithmetic.h"
#include "jacobian/implicit.h"
#include "jacobian/pattern.h"

namespace loipe {

namespace {

std::vector<Label> label_union(const std::vector<Label>& a, const std::vector<Label>& b) {
  std::vector<Label> labels = a;
  labels.insert(labels.end(), b.begin(), b.end());
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  return labels;
}

/// a + b for two values with coefficients +1 or -1, by one addition or subtraction.
void add_values(Recorder& recorder, Term& a, const Term& b) {
  const std::vector<Label> labels = label_union(a.value->axes, b.value->axes);
  Value x = recorder.aligned(*a.value, labels), y = recorder.aligned(*b.value, labels);
  if (recorder.type(x).dtype != recorder.type(y).dtype) {
    x = recorder.convert(x, DType::f64);
    y = recorder.convert(y, DType::f64);
  }
  Value sum;
  if (a.coefficient == b.coefficient) {
    sum = recorder.add(x, y);
  } else {
    sum = a.coefficient > 0 ? recorder.subtract(x, y) : recorder.subtract(y, x);
    a.coefficient = 1;
  }
  recorder.count(0, count_assignments(labels, a.extents));
  a.value = LabelledValue{sum, labels};
}

/// value + constant, with the value's coefficient +1 or -1.
void add_constant(Recorder& recorder, Term& a, double constant) {
  const TensorType type = recorder.type(a.value->value);
  const Value scalar = recorder.scalar(constant, type.dtype);
  a.value->value =
      a.coefficient > 0 ? recorder.add(a.value->value, scalar) : recorder.subtract(scalar, a.value->value);
  a.coefficient = 1;
  recorder.count(0, type.element_count());
}

/// Where one of two terms of the same pattern exists; everywhere if one has no mask.
std::optional<LabelledValue> united(Recorder& recorder, const std::optional<LabelledValue>& a,
                                    const std::optional<LabelledValue>& b) {
  if (!a || !b) return std::nullopt;
  const std::vector<Label> labels = label_union(a->axes, b->axes);
  const Value x = recorder.aligned(*a, labels), y = recorder.aligned(*b, labels);
  const bool both_soft = a->kind == MaskKind::soft && b->kind == MaskKind::soft;
  return LabelledValue{recorder.builder().emit("or", {x, y}), labels,
                       both_soft ? MaskKind::soft : MaskKind::hard};
}

/// Adds a term of the same pattern. False when the two cancel to nothing.
bool merge(Recorder& recorder, Term& a, Term b) {
  std::optional<LabelledValue> mask = a.mask;
  if (a.mask != b.mask) {
    mask = united(recorder, a.mask, b.mask);
    a = without_mask(recorder, std::move(a));
    b = without_mask(recorder, std::move(b));
  }
  if (a.value && b.value) {
    add_values(recorder, a, b);
  } else if (a.value) {
    add_constant(recorder, a, b.coefficient);
  } else if (b.value) {
    std::swap(a, b);
    add_constant(recorder, a, b.coefficient);
  } else {
    a.coefficient += b.coefficient;
  }
  a.mask = mask;
  return a.value || a.coefficient != 0;
}

/// Merges with a term that has the same pattern, or gets it by one refinement.
bool merge_with_equal(Recorder& recorder, LocalJacobian& sum, Term& term, const Shape& out, const Shape& in) {
  auto& terms = sum.terms;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (!same_pattern(terms[i], term)) {
      if (auto refined = refined_to(recorder, term, terms[i], out, in)) term = std::move(*refined);
      else if (auto other = refined_to(recorder, terms[i], term, out, in)) terms[i] = std::move(*other);
      else continue;
    }
    if (!merge(recorder, terms[i], std::move(term)))
      terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  return false;
}

/// The term with 1 for every entry that exists and 0 for those that its mask hides.
Term existence(Recorder& recorder, Term term) {
  term.coefficient = 1;
  term.value = LabelledValue{recorder.convert(term.mask->value, DType::i32), term.mask->axes};
  term.mask.reset();
  return term;
}

/// Entries that the masks of both terms hide stay hidden, so that no later factor makes them
/// 0*inf. The joined pattern depends on coordinates alone: the labels are those of the joined term.
LabelledValue joined_mask(Recorder& recorder, const Term& a, const Term& b, const Shape& out,
                          const Shape& in) {
  Recorder integers(recorder.builder(), DType::i32);  // logic, which costs nothing
  const Term x = existence(integers, a), y = existence(integers, b);
  const LabelledValue count = *JoinPlan(x, y, out, in).join(integers).value;
  const Value zero = recorder.scalar(0, DType::i32);
  const bool both_soft = a.mask->kind == MaskKind::soft && b.mask->kind == MaskKind::soft;
  return {recorder.builder().emit("gt", {count.value, zero}), count.axes,
          both_soft ? MaskKind::soft : MaskKind::hard};
}

Term joined(Recorder& recorder, const Term& a, const Term& b, const Shape& out, const Shape& in) {
  const Term x = without_mask(recorder, a), y = without_mask(recorder, b);
  Term both = JoinPlan(x, y, out, in).join(recorder);
  if (a.mask && b.mask) both.mask = joined_mask(recorder, a, b, out, in);
  return both;
}

constexpr std::int64_t kCannotJoin = std::numeric_limits<std::int64_t>::max();

/// Numbers that the join of the whole list would store.
std::int64_t joined_elements(const std::vector<Term>& terms, const Shape& out, const Shape& in) {
  Term all = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    const JoinPlan plan(all, terms[i], out, in);
    if (plan.stored_elements() == kCannotJoin) return kCannotJoin;
    all = plan.pattern();
  }
  return all.stored_elements();
}

}  // namespace

Term without_mask(Recorder& recorder, Term term) {
  if (!term.mask) return term;
  const std::vector<Label> labels =
      term.value ? label_union(term.mask->axes, term.value->axes) : term.mask->axes;
  const DType dtype = term.value ? recorder.type(term.value->value).dtype : recorder.dtype();
  const Value value =
      term.value ? recorder.aligned(*term.value, labels) : recorder.scalar(term.coefficient, dtype);
  if (!term.value) term.coefficient = 1;
  const Value chosen =
      recorder.select(recorder.aligned(*term.mask, labels), value, recorder.scalar(0, dtype));
  term.value = LabelledValue{chosen, labels};
  term.mask.reset();
  return term;
}

void add(Recorder& recorder, LocalJacobian& sum, Term term, const Shape& out, const Shape& in) {
  require(!sum.implicit, "a term is added to an implicit Jacobian");
  if (merge_with_equal(recorder, sum, term, out, in)) return;
  auto& terms = sum.terms;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const JoinPlan plan(terms[i], term, out, in);
    if (plan.stored_elements() > terms[i].stored_elements() + term.stored_elements()) continue;
    Term both = joined(recorder, terms[i], term, out, in);
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(i));
    return add(recorder, sum, std::move(both), out, in);
  }
  terms.push_back(std::move(term));
  if (terms.size() < 3) return;
  std::int64_t stored = 0;
  for (const Term& t : terms) stored += t.stored_elements();
  if (joined_elements(terms, out, in) > stored) return;
  Term all = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) all = joined(recorder, all, terms[i], out, in);
  terms.assign(1, std::move(all));
}

void add(Recorder& recorder, LocalJacobian& sum, const LocalJacobian& other, const Shape& out,
         const Shape& in) {
  if (other.is_zero()) return;
  if (sum.is_zero()) {
    sum = other;
    return;
  }
  if (sum.implicit && other.implicit)
    if (auto both = implicit_sum(sum.implicit, other.implicit)) {
      sum.implicit = std::move(both);
      return;
    }
  sum = explicit_terms(recorder, sum, out, in, recorder.dtype());
  for (const Term& term : explicit_terms(recorder, other, out, in, recorder.dtype()).terms)
    add(recorder, sum, term, out, in);
}

}  // namespace loipe
