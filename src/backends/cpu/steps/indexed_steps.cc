// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/indexed_steps.h"

#include <optional>

#include "backends/cpu/steps/element.h"
#include "backends/cpu/steps/nest.h"
#include "base/check.h"

namespace loipe::cpu {

namespace {

/// Walks all labels and knows the place of each assignment.
class PlaceCursor {
 public:
  PlaceCursor(const RunContext& context, const IndexedPlaces& places, const Shape& extents)
      : context_(context), places_(places), extents_(extents) {
    require(extents.size() <= kMaxLabels, "a gather or scatter has too many labels");
    index_.fill(0);
  }

  std::span<const std::int64_t> index() const { return {index_.data(), extents_.size()}; }

  /// Nothing when a coordinate lies outside.
  std::optional<std::int64_t> place() const {
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < places_.shape.size(); ++axis) {
      const std::int64_t position = position_along(places_.coordinates[axis]);
      if (position < 0 || position >= places_.shape[axis]) return std::nullopt;
      place = place * places_.shape[axis] + position;
    }
    return place;
  }

  void next() {
    for (std::size_t axis = extents_.size(); axis-- > 0;) {
      if (++index_[axis] < extents_[axis]) return;
      index_[axis] = 0;
    }
  }

 private:
  static constexpr std::size_t kMaxLabels = 64;

  std::int64_t position_along(const Coordinate& coordinate) const {
    if (coordinate.index) return looked_up(*coordinate.index);
    std::int64_t position = coordinate.offset;
    for (const Stride& s : coordinate.strides) position += s.stride * index_[s.label];
    return position;
  }

  std::int64_t looked_up(const IndexArray& index) const {
    const StridedView& view = places_.index_arrays[index.value.index];
    std::int64_t at = view.offset;
    for (std::size_t axis = 0; axis < index.labels.size(); ++axis)
      at += view.strides[axis] * index_[index.labels[axis]];
    return view.dtype == DType::i32 ? *context_.at<std::int32_t>(view.buffer, at)
                                    : *context_.at<std::int64_t>(view.buffer, at);
  }

  const RunContext& context_;
  const IndexedPlaces& places_;
  const Shape& extents_;
  std::array<std::int64_t, kMaxLabels> index_;
};

template <class E>
class IndexedReadStep final : public Step {
 public:
  IndexedReadStep(IndexedPlaces places, const StridedView& source, const StridedView& out)
      : places_(std::move(places)), source_(source), out_(out), count_(out.count()) {}

  void run(const RunContext& context) const override {
    const E* source = context.at<E>(source_.buffer, source_.offset);
    E* out = context.at<E>(out_.buffer, out_.offset);
    PlaceCursor cursor(context, places_, out_.shape);
    for (std::int64_t i = 0; i < count_; ++i, cursor.next()) {
      const std::optional<std::int64_t> place = cursor.place();
      out[i] = place ? source[*place] : E{0};
    }
  }

 private:
  IndexedPlaces places_;
  StridedView source_, out_;
  std::int64_t count_;
};

template <class E>
class IndexedAddStep final : public Step {
 public:
  IndexedAddStep(IndexedPlaces places, const StridedView& value, const StridedView& out, bool is_zero)
      : places_(std::move(places)), value_(value), out_(out), count_(value.count()), is_zero_(is_zero) {}

  void run(const RunContext& context) const override {
    const E* value = context.at<E>(value_.buffer, value_.offset);
    E* out = context.at<E>(out_.buffer, out_.offset);
    PlaceCursor cursor(context, places_, value_.shape);
    for (std::int64_t i = 0; i < count_; ++i, cursor.next()) {
      const std::optional<std::int64_t> place = cursor.place();
      if (!place) continue;
      std::int64_t at = 0;
      for (std::size_t axis = 0; axis < value_.strides.size(); ++axis)
        at += value_.strides[axis] * cursor.index()[axis];
      E& to = out[*place];
      to = is_zero_ && to == E{0} ? value[at] : to + value[at];
    }
  }

 private:
  IndexedPlaces places_;
  StridedView value_, out_;
  std::int64_t count_;
  bool is_zero_;
};

}  // namespace

std::unique_ptr<Step> make_indexed_read_step(IndexedPlaces places, const StridedView& source,
                                             const StridedView& out) {
  return visit_element(size_of(out.dtype), [&]<class E>(E) -> std::unique_ptr<Step> {
    return std::make_unique<IndexedReadStep<E>>(std::move(places), source, out);
  });
}

// Integers wrap around, as unsigned ones do.
std::unique_ptr<Step> make_indexed_add_step(IndexedPlaces places, const StridedView& value,
                                            const StridedView& out, bool is_zero) {
  switch (out.dtype) {
    case DType::f32: return std::make_unique<IndexedAddStep<float>>(std::move(places), value, out, is_zero);
    case DType::f64: return std::make_unique<IndexedAddStep<double>>(std::move(places), value, out, is_zero);
    case DType::i32:
      return std::make_unique<IndexedAddStep<std::uint32_t>>(std::move(places), value, out, is_zero);
    case DType::i64:
      return std::make_unique<IndexedAddStep<std::uint64_t>>(std::move(places), value, out, is_zero);
    case DType::boolean: break;
  }
  throw InternalError("addition of bool");
}

}  // namespace loipe::cpu
