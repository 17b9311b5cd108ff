// SPDX-License-Identifier: Apache-2.0
#include "jacobian/implicit.h"

#include <algorithm>

#include "base/check.h"
#include "jacobian/raw_term.h"

namespace loipe {

namespace {

enum class Direction : std::uint8_t { vjp, jvp };

Shape joined(Shape first, const Shape& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// The Jacobian of one label per axis of out and of in.
LocalJacobian dense_jacobian(Recorder& recorder, Value value, const Shape& out, const Shape& in) {
  RawTerm term;
  Access access{value, {}};
  for (const auto& [shape, coordinates] : {std::pair(&out, &term.out), std::pair(&in, &term.in)})
    for (std::int64_t extent : *shape) {
      coordinates->push_back(Coordinate::of(term.add_label(extent)));
      access.at.push_back(coordinates->back());
    }
  term.values.push_back(std::move(access));
  LocalJacobian result;
  if (auto normal = std::move(term).normalised(recorder)) result.terms.push_back(std::move(*normal));
  return result;
}

LocalJacobian identity(Recorder& recorder, const Shape& shape) {
  RawTerm term;
  for (std::int64_t extent : shape) term.out.push_back(Coordinate::of(term.add_label(extent)));
  term.in = term.out;
  LocalJacobian result;
  if (auto normal = std::move(term).normalised(recorder)) result.terms.push_back(std::move(*normal));
  return result;
}

/// An implicit Jacobian applied to the terms of an explicit one.
class Application {
 public:
  /// `near` is the shape at which the two meet, `far` that of the implicit one's other end.
  Application(Recorder& recorder, const ImplicitJacobian& implicit, Direction direction, const Shape& near,
              const Shape& far)
      : recorder_(recorder),
        implicit_(implicit),
        direction_(direction),
        near_(near),
        far_(far),
        tied_(implicit.tied_axes()) {
    require(tied_ <= std::min(near.size(), far.size()) &&
                std::equal(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(tied_), far.begin()),
            "the tied axes of an implicit Jacobian differ on its two sides");
  }

  /// `outer` is the shape at the factor's free end.
  LocalJacobian operator()(const LocalJacobian& factor, const Shape& outer) const {
    const bool is_vjp = direction_ == Direction::vjp;
    const Shape &out = is_vjp ? outer : far_, &in = is_vjp ? far_ : outer;
    std::int64_t directions = 0;
    for (const Term& term : factor.terms) directions += count_directions(term);
    // Many terms that each need most of the far side's elements are cheaper as one.
    const bool as_one = factor.terms.size() > 1 && directions > element_count(outer);
    const LocalJacobian terms = as_one ? gathered(factor, outer) : factor;
    LocalJacobian result;
    for (const Term& term : terms.terms)
      if (auto product = applied(term)) add(recorder_, result, std::move(*product), out, in);
    return result;
  }

 private:
  const std::vector<Coordinate>& outer_axes(const Term& term) const {
    return direction_ == Direction::vjp ? term.out : term.in;
  }
  const std::vector<Coordinate>& inner_axes(const Term& term) const {
    return direction_ == Direction::vjp ? term.in : term.out;
  }

  /// Those of the outer and of the tied axes; the core of the implicit Jacobian takes in
  /// all others.
  std::vector<bool> needed_labels(const Term& term) const {
    std::vector<bool> is_needed(term.extents.size(), false);
    const auto need = [&](Label label) { is_needed[label] = true; };
    for (const Coordinate& axis : outer_axes(term)) for_each_label(axis, need);
    for (std::size_t axis = 0; axis < tied_; ++axis) for_each_label(inner_axes(term)[axis], need);
    return is_needed;
  }

  /// The needed labels that need directions of their own: all that are not carried. Two
  /// assignments that differ in a carried label lie at different positions of its tied
  /// axis, so they share a direction.
  std::vector<Label> direction_labels(const Term& term) const {
    std::vector<bool> has_direction = needed_labels(term);
    for (std::size_t axis = 0; axis < tied_; ++axis)
      if (const Coordinate& at = inner_axes(term)[axis]; at.is_single()) has_direction[at.label()] = false;
    std::vector<Label> labels;
    for (Label label = 0; label < term.extents.size(); ++label)
      if (has_direction[label]) labels.push_back(label);
    return labels;
  }

  std::int64_t count_directions(const Term& term) const {
    return count_assignments(direction_labels(term), term.extents);
  }

  LocalJacobian gathered(const LocalJacobian& factor, const Shape& outer) const {
    const bool is_vjp = direction_ == Direction::vjp;
    const Shape &out = is_vjp ? outer : near_, &in = is_vjp ? near_ : outer;
    return dense_jacobian(recorder_, materialize(recorder_, factor, out, in, recorder_.dtype()), out, in);
  }

  /// The term's entries as directions [K labels..., near...].
  Value seeds(const Term& term, const std::vector<Label>& labels, const Shape& extents) const {
    RawTerm raw;
    for (std::int64_t extent : term.extents) raw.add_label(extent);
    for (Label label : labels) raw.out.push_back(Coordinate::of(label));
    raw.in = inner_axes(term);
    raw.coefficient = term.coefficient;
    if (term.value) {
      Access access{term.value->value, {}};
      for (Label label : term.value->axes) access.at.push_back(Coordinate::of(label));
      raw.values.push_back(std::move(access));
    }
    LocalJacobian entries;
    if (auto normal = std::move(raw).normalised(recorder_)) entries.terms.push_back(std::move(*normal));
    return materialize(recorder_, entries, extents, near_, recorder_.dtype());
  }

  /// [K labels..., near...] -> [K labels..., far...]
  Value apply(Value seeds, const Shape& extents) const {
    Builder& builder = recorder_.builder();
    const std::int64_t count = element_count(extents);
    recorder_.count(count * implicit_.multiplications(), 0);
    const Value directions =
        recorder_.convert(recorder_.reshape(seeds, joined({count}, near_)), implicit_.dtype());
    const Value result = direction_ == Direction::vjp ? implicit_.vjp(builder, directions)
                                                      : implicit_.jvp(builder, directions);
    require(recorder_.type(result).shape == joined({count}, far_),
            "an implicit Jacobian returned directions of another shape");
    return recorder_.reshape(result, joined(extents, far_));
  }

  /// Where anything exists of what the core takes in.
  Access remaining_mask(const LabelledValue& mask, const std::vector<bool>& is_kept) const {
    std::vector<Label> kept;
    for (Label label : mask.axes)
      if (is_kept[label]) kept.push_back(label);
    const LabelledValue any = recorder_.any(mask, kept);
    Access access{any.value, {}, any.kind};
    for (Label label : any.axes) access.at.push_back(Coordinate::of(label));
    return access;
  }

  /// Directions are 0 where the term's mask hides it.
  std::optional<Term> applied(const Term& masked) const {
    const Term term = without_mask(recorder_, masked);
    const std::vector<Label> labels = direction_labels(term);
    Shape extents;
    for (Label label : labels) extents.push_back(term.extents[label]);
    RawTerm product;
    for (std::int64_t extent : term.extents) product.add_label(extent);
    product.is_live = needed_labels(term);
    Access access{apply(seeds(term, labels, extents), extents), {}};
    for (Label label : labels) access.at.push_back(Coordinate::of(label));
    std::vector<Coordinate> far;
    for (std::size_t axis = 0; axis < far_.size(); ++axis)
      far.push_back(axis < tied_ ? inner_axes(term)[axis] : Coordinate::of(product.add_label(far_[axis])));
    access.at.insert(access.at.end(), far.begin(), far.end());
    product.values.push_back(std::move(access));
    if (masked.mask) product.masks.push_back(remaining_mask(*masked.mask, needed_labels(term)));
    (direction_ == Direction::vjp ? product.out : product.in) = outer_axes(term);
    (direction_ == Direction::vjp ? product.in : product.out) = std::move(far);
    return std::move(product).normalised(recorder_);
  }

  Recorder& recorder_;
  const ImplicitJacobian& implicit_;
  Direction direction_;
  const Shape &near_, &far_;
  std::size_t tied_;
};

/// Tied as far as both are; the axes that are not are part of its core.
class ImplicitSum final : public ImplicitJacobian {
 public:
  using Part = std::shared_ptr<const ImplicitJacobian>;
  ImplicitSum(Part a, Part b) : a_(std::move(a)), b_(std::move(b)) {}

  DType dtype() const override { return a_->dtype(); }
  bool has_vjp() const override { return a_->has_vjp() && b_->has_vjp(); }
  bool has_jvp() const override { return a_->has_jvp() && b_->has_jvp(); }
  std::size_t tied_axes() const override { return std::min(a_->tied_axes(), b_->tied_axes()); }
  Value vjp(Builder& builder, Value cotangents) const override {
    return Recorder(builder, dtype()).add(a_->vjp(builder, cotangents), b_->vjp(builder, cotangents));
  }
  Value jvp(Builder& builder, Value tangents) const override {
    return Recorder(builder, dtype()).add(a_->jvp(builder, tangents), b_->jvp(builder, tangents));
  }
  std::int64_t multiplications() const override { return a_->multiplications() + b_->multiplications(); }

 private:
  Part a_, b_;
};

}  // namespace

std::shared_ptr<const ImplicitJacobian> implicit_sum(std::shared_ptr<const ImplicitJacobian> a,
                                                     std::shared_ptr<const ImplicitJacobian> b) {
  auto sum = std::make_shared<ImplicitSum>(a, b);
  const bool has_direction = sum->has_vjp() || sum->has_jvp();
  return has_direction && a->dtype() == b->dtype() ? sum : nullptr;
}

LocalJacobian multiply_implicit(Recorder& recorder, const LocalJacobian& post, const LocalJacobian& pre,
                                const ProductShapes& shapes) {
  const DType dtype = recorder.dtype();
  if (post.implicit && post.implicit->has_jvp()) {
    const Application application(recorder, *post.implicit, Direction::jvp, shapes.middle, shapes.out);
    return application(explicit_terms(recorder, pre, shapes.middle, shapes.in, dtype), shapes.in);
  }
  if (pre.implicit && pre.implicit->has_vjp()) {
    const Application application(recorder, *pre.implicit, Direction::vjp, shapes.middle, shapes.in);
    return application(explicit_terms(recorder, post, shapes.out, shapes.middle, dtype), shapes.out);
  }
  // An implicit factor that only has the other direction is made explicit by it.
  return multiply(recorder, explicit_terms(recorder, post, shapes.out, shapes.middle, dtype),
                  explicit_terms(recorder, pre, shapes.middle, shapes.in, dtype), shapes);
}

LocalJacobian explicit_terms(Recorder& recorder, const LocalJacobian& jacobian, const Shape& out,
                             const Shape& in, DType dtype) {
  if (!jacobian.implicit) return jacobian;
  const ImplicitJacobian& implicit = *jacobian.implicit;
  const bool by_vjp = implicit.has_vjp() && (!implicit.has_jvp() || element_count(out) <= element_count(in));
  Recorder typed(recorder.builder(), dtype);
  const LocalJacobian result =
      by_vjp ? Application(typed, implicit, Direction::vjp, out, in)(identity(typed, out), out)
             : Application(typed, implicit, Direction::jvp, in, out)(identity(typed, in), in);
  recorder.count(typed.cost().multiplications, typed.cost().additions);
  return result;
}

}  // namespace loipe
