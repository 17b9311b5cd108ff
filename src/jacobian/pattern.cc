// SPDX-License-Identifier: Apache-2.0
#include "jacobian/pattern.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "jacobian/raw_term.h"

namespace loipe {

bool same_pattern(const Term& a, const Term& b) {
  return a.extents == b.extents && a.out == b.out && a.in == b.in;
}

namespace {

/// s_k = s_{k+1} * extent_{k+1}, innermost stride 1, offset 0: a group that covers the axis.
bool is_whole_list(const Coordinate& c, std::int64_t axis_extent, const Term& term) {
  if (!c.is_affine() || c.offset != 0 || c.strides.size() < 2) return false;
  std::int64_t stride = 1;
  for (std::size_t k = c.strides.size(); k-- > 0;) {
    if (c.strides[k].stride != stride) return false;
    stride *= term.extent(c.strides[k].label);
  }
  return stride == axis_extent;
}

}  // namespace

std::optional<Term> refined_to(Recorder& recorder, const Term& term, const Term& other, const Shape& out,
                               const Shape& in) {
  RawTerm raw;
  for (std::int64_t extent : term.extents) raw.add_label(extent);
  raw.out = term.out;
  raw.in = term.in;
  bool any = false;
  auto split = [&](std::vector<Coordinate>& mine, const std::vector<Coordinate>& theirs, const Shape& shape) {
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (!is_bare(mine[axis], shape[axis], raw.extents) || !is_whole_list(theirs[axis], shape[axis], other))
        continue;
      Coordinate digits;
      for (const Stride& s : theirs[axis].strides)
        digits.strides.push_back({raw.add_label(other.extent(s.label)), s.stride});
      raw.substitute(recorder.builder(), mine[axis].label(), digits);
      any = true;
    }
  };
  // The pattern alone first: nothing may be recorded for an attempt that fails.
  split(raw.out, other.out, out);
  split(raw.in, other.in, in);
  if (!any) return std::nullopt;
  RawTerm pattern = raw;
  const std::optional<Term> bare = std::move(pattern).normalised(recorder);
  if (!bare || !same_pattern(*bare, other)) return std::nullopt;

  RawTerm whole;
  for (std::int64_t extent : term.extents) whole.add_label(extent);
  whole.out = term.out;
  whole.in = term.in;
  whole.coefficient = term.coefficient;
  if (term.value) whole.values.push_back(access_of(*term.value));
  if (term.mask) whole.masks.push_back(access_of(*term.mask));
  std::swap(raw, whole);
  split(raw.out, other.out, out);
  split(raw.in, other.in, in);
  return std::move(raw).normalised(recorder);
}

JoinPlan::JoinPlan(const Term& a, const Term& b, const Shape& out, const Shape& in)
    : shape_(out), out_rank_(out.size()), a_{&a, {}}, b_{&b, {}} {
  shape_.insert(shape_.end(), in.begin(), in.end());
  find_groups();
  choose_labels();
}

const Coordinate& JoinPlan::coordinate(const Term& term, std::size_t axis) const {
  return axis < out_rank_ ? term.out[axis] : term.in[axis - out_rank_];
}

/// Axes that share a label in either term belong together.
void JoinPlan::find_groups() {
  group_.resize(shape_.size());
  std::iota(group_.begin(), group_.end(), std::size_t{0});
  auto merge = [&](std::size_t x, std::size_t y) {
    const std::size_t from = std::max(group_[x], group_[y]), to = std::min(group_[x], group_[y]);
    std::replace(group_.begin(), group_.end(), from, to);
  };
  for (const Term* term : {a_.term, b_.term}) {
    std::vector<std::size_t> first(term->extents.size(), shape_.size());
    for (std::size_t axis = 0; axis < shape_.size(); ++axis)
      for_each_label(coordinate(*term, axis), [&](Label label) {
        if (first[label] == shape_.size()) first[label] = axis;
        merge(first[label], axis);
      });
  }
}

/// Whether the coordinates of these axes are equal up to the names of the labels.
bool JoinPlan::is_tied_alike(const std::vector<std::size_t>& axes) const {
  std::vector<std::int64_t> other(a_.term->extents.size(), -1);
  std::vector<bool> taken(b_.term->extents.size(), false);
  auto match = [&](Label x, Label y) {
    if (other[x] < 0 && !taken[y] && a_.term->extent(x) == b_.term->extent(y)) {
      other[x] = y;
      taken[y] = true;
    }
    return other[x] == static_cast<std::int64_t>(y);
  };
  for (std::size_t axis : axes) {
    const Coordinate &x = coordinate(*a_.term, axis), &y = coordinate(*b_.term, axis);
    if (x.offset != y.offset || x.strides.size() != y.strides.size() ||
        x.index.has_value() != y.index.has_value())
      return false;
    for (std::size_t k = 0; k < x.strides.size(); ++k)
      if (x.strides[k].stride != y.strides[k].stride || !match(x.strides[k].label, y.strides[k].label))
        return false;
    if (!x.index) continue;
    if (x.index->labels.size() != y.index->labels.size()) return false;
    for (std::size_t k = 0; k < x.index->labels.size(); ++k)
      if (!match(x.index->labels[k], y.index->labels[k])) return false;
    IndexArray renamed = *y.index;
    renamed.labels = x.index->labels;
    if (!(renamed == *x.index)) return false;
  }
  return true;
}

void JoinPlan::keep_group(const std::vector<std::size_t>& axes) {
  auto joined = [&](Label x, Label y) {
    if (a_.joined_label[x] < 0) {
      a_.joined_label[x] = b_.joined_label[y] = static_cast<std::int64_t>(extents_.size());
      extents_.push_back(a_.term->extent(x));
    }
    return static_cast<Label>(a_.joined_label[x]);
  };
  for (std::size_t axis : axes) {
    Coordinate kept = coordinate(*a_.term, axis);
    const Coordinate& twin = coordinate(*b_.term, axis);
    for (std::size_t k = 0; k < kept.strides.size(); ++k)
      kept.strides[k].label = joined(kept.strides[k].label, twin.strides[k].label);
    if (kept.index)
      for (std::size_t k = 0; k < kept.index->labels.size(); ++k)
        kept.index->labels[k] = joined(kept.index->labels[k], twin.index->labels[k]);
    joined_axes_[axis] = std::move(kept);
  }
}

void JoinPlan::untie_group(const std::vector<std::size_t>& axes) {
  for (std::size_t axis : axes) {
    if (shape_[axis] == 1) {
      joined_axes_[axis] = Coordinate::fixed(0);
      // An index known only at run time may lie outside even an axis of extent 1.
      can_join_ =
          can_join_ && !coordinate(*a_.term, axis).is_dynamic() && !coordinate(*b_.term, axis).is_dynamic();
      continue;
    }
    const auto label = static_cast<Label>(extents_.size());
    extents_.push_back(shape_[axis]);
    value_labels_.push_back(label);
    joined_axes_[axis] = Coordinate::of(label);
  }
}

void JoinPlan::choose_labels() {
  joined_axes_.resize(shape_.size());
  a_.joined_label.assign(a_.term->extents.size(), -1);
  b_.joined_label.assign(b_.term->extents.size(), -1);
  for (std::size_t first = 0; first < shape_.size(); ++first) {
    if (group_[first] != first) continue;
    std::vector<std::size_t> axes;
    for (std::size_t axis = first; axis < shape_.size(); ++axis)
      if (group_[axis] == first) axes.push_back(axis);
    if (is_tied_alike(axes)) keep_group(axes);
    else untie_group(axes);
  }
  for (const Side* side : {&a_, &b_})  // kept labels that either value depends on
    for (const auto* labelled : {&side->term->value, &side->term->mask})
      if (*labelled)
        for (Label label : (*labelled)->axes)
          if (side->joined_label[label] >= 0)
            value_labels_.push_back(static_cast<Label>(side->joined_label[label]));
  std::sort(value_labels_.begin(), value_labels_.end());
  value_labels_.erase(std::unique(value_labels_.begin(), value_labels_.end()), value_labels_.end());
  if (can_join_) stored_elements_ = count_assignments(value_labels_, extents_);
}

/// Whether the term's own value can stand for the joined one: it fills every group
/// that is untied, by one bare label per axis, so that no entry is missing.
bool JoinPlan::is_whole(const Side& side) const {
  std::vector<bool> seen(side.term->extents.size(), false);
  for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
    const Coordinate& mine = coordinate(*side.term, axis);
    bool kept = false;
    for_each_label(mine, [&](Label label) { kept = kept || side.joined_label[label] >= 0; });
    if (kept || (shape_[axis] == 1 && mine.is_fixed())) continue;
    if (!is_bare(mine, shape_[axis], side.term->extents) || seen[mine.label()]) return false;
    seen[mine.label()] = true;
  }
  return true;
}

namespace {

Value signed_value(Recorder& recorder, const Term& term, DType dtype) {
  if (!term.value) return recorder.scalar(term.coefficient, dtype);
  const Value value = recorder.convert(term.value->value, dtype);
  return term.coefficient < 0 ? recorder.negate(value) : value;
}

}  // namespace

/// The term's value over all joined value labels, by transposing and broadcasting.
Value JoinPlan::whole_value(Recorder& recorder, const Side& side, DType dtype) const {
  LabelledValue value{signed_value(recorder, *side.term, dtype), {}};
  if (side.term->value)
    for (Label label : side.term->value->axes) {
      std::int64_t joined = side.joined_label[label];
      for (std::size_t axis = 0; joined < 0; ++axis) {
        const Coordinate& mine = coordinate(*side.term, axis);
        if (mine.is_label() && mine.label() == label) joined = joined_axes_[axis].label();
      }
      value.axes.push_back(static_cast<Label>(joined));
    }
  Shape shape;
  Integers dimensions;
  for (Label label : value_labels_) {
    dimensions.push_back(static_cast<std::int64_t>(shape.size()));
    shape.push_back(extents_[label]);
  }
  const Value aligned = recorder.aligned(value, value_labels_);
  return recorder.type(aligned).shape == shape ? aligned : recorder.broadcast(aligned, shape, dimensions);
}

/// base + the term's value written where its coordinates say.
Value JoinPlan::scattered(Recorder& recorder, const Side& side, DType dtype,
                          std::optional<Value> base) const {
  // Iterate over the term's own labels in untied groups and over the kept labels of
  // the joined value; number the former behind the joined ones.
  std::vector<std::int64_t> extents = extents_;
  std::vector<Label> renamed(side.term->extents.size());
  std::vector<Label> iterated;
  for (Label label = 0; label < renamed.size(); ++label) {
    if (side.joined_label[label] >= 0) {
      renamed[label] = static_cast<Label>(side.joined_label[label]);
      continue;
    }
    renamed[label] = static_cast<Label>(extents.size());
    extents.push_back(side.term->extent(label));
    iterated.push_back(renamed[label]);
  }
  Shape shape;
  std::vector<Coordinate> to;
  for (Label label : value_labels_) {
    shape.push_back(extents_[label]);
    Coordinate at = Coordinate::of(label);
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
      if (!joined_axes_[axis].is_label() || joined_axes_[axis].label() != label) continue;
      const Coordinate& mine = coordinate(*side.term, axis);
      bool kept = false;
      for_each_label(mine, [&](Label own) { kept = kept || side.joined_label[own] >= 0; });
      if (kept) break;
      at = mine;  // an untied axis
      for (Stride& s : at.strides) s.label = renamed[s.label];
      if (at.index)
        for (Label& own : at.index->labels) own = renamed[own];
      break;
    }
    if (at.is_label() && at.label() == label) iterated.push_back(label);
    to.push_back(std::move(at));
  }
  std::sort(iterated.begin(), iterated.end());
  LabelledValue value{signed_value(recorder, *side.term, dtype), {}};
  if (side.term->value)
    for (Label label : side.term->value->axes) value.axes.push_back(renamed[label]);
  if (base) recorder.count(0, count_assignments(iterated, extents));
  return recorder.scatter(value, to, iterated, extents, shape, base);
}

Term JoinPlan::pattern() const {
  Term joined;
  joined.extents = extents_;
  joined.value = LabelledValue{Value{}, value_labels_};
  joined.out.assign(joined_axes_.begin(), joined_axes_.begin() + static_cast<std::ptrdiff_t>(out_rank_));
  joined.in.assign(joined_axes_.begin() + static_cast<std::ptrdiff_t>(out_rank_), joined_axes_.end());
  return joined;
}

Term JoinPlan::join(Recorder& recorder) const {
  require(!a_.term->mask && !b_.term->mask, "masked terms are settled before they are joined");
  DType dtype = recorder.dtype();
  for (const Side* side : {&a_, &b_})
    if (side->term->value && recorder.type(side->term->value->value).dtype == DType::f64) dtype = DType::f64;
  const bool a_is_whole = is_whole(a_), b_is_whole = is_whole(b_);
  const Side& first = b_is_whole && !a_is_whole ? b_ : a_;
  const Side& second = &first == &a_ ? b_ : a_;
  const Value base =
      a_is_whole || b_is_whole ? whole_value(recorder, first, dtype) : scattered(recorder, first, dtype, {});
  Term joined = pattern();
  joined.value->value = scattered(recorder, second, dtype, base);

  // Labels as N5 wants them, and labels that vanished from all coordinates dropped.
  RawTerm raw;
  for (std::int64_t extent : joined.extents) raw.add_label(extent);
  raw.out = joined.out;
  raw.in = joined.in;
  Access access{joined.value->value, {}};
  for (Label label : value_labels_) access.at.push_back(Coordinate::of(label));
  raw.values.push_back(std::move(access));
  std::optional<Term> normal = std::move(raw).normalised(recorder);
  require(normal.has_value(), "a join of two terms vanished");
  return *normal;
}

}  // namespace loipe
