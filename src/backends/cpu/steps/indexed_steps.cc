// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/indexed_steps.h"

#include "backends/cpu/steps/element.h"
#include "backends/cpu/steps/nest.h"
#include "base/check.h"

namespace loipe::cpu {

namespace {

/// Walks all labels in rows along the last one, and knows the places of a row: what does not vary along it is
/// looked up once.
class PlaceRows {
 public:
  /// `strides` are those of a contiguous tensor of the places' shape.
  PlaceRows(const RunContext& context, const IndexedPlaces& places, const Integers& strides,
            const Shape& extents)
      : context_(context),
        places_(places),
        extents_(extents),
        row_(extents.empty() ? 1 : extents.back()),
        axis_strides_(strides) {
    require(extents.size() <= kMost && places.shape.size() <= kMost,
            "a gather or scatter has too many labels");
    index_.fill(0);
  }

  std::int64_t row() const { return row_; }
  std::span<const std::int64_t> index() const { return {index_.data(), extents_.size()}; }

  /// Calls visit(i, place) for each element i of the row; the place is kOutside where a coordinate is.
  static constexpr std::int64_t kOutside = -1;
  template <class F>
  void visit_row(F visit) {
    const std::int64_t fixed = find_axes();
    for (std::int64_t i = 0; i < row_; ++i) {
      std::int64_t place = fixed;
      for (std::size_t k = 0; k < varying_count_ && place != kOutside; ++k) {
        const Varying& axis = varying_[k];
        const std::int64_t position = axis.table == nullptr
                                          ? axis.position + i * axis.step
                                          : looked_up(*axis.table, axis.position + i * axis.step);
        place = position < 0 || position >= axis.extent ? kOutside : place + position * axis.stride;
      }
      visit(i, place);
    }
  }

  void next_row() {
    for (std::size_t axis = extents_.size(); axis-- > 1;) {
      if (++index_[axis - 1] < extents_[axis - 1]) return;
      index_[axis - 1] = 0;
    }
  }

 private:
  static constexpr std::size_t kMost = 64;

  /// An axis whose position varies along the row: it, or where it stands in a table, is position + i * step.
  struct Varying {
    const StridedView* table;
    std::int64_t position, step, extent, stride;
  };

  /// The place as far as it is the same for the row; kOutside if that already lies outside.
  std::int64_t find_axes() {
    varying_count_ = 0;
    std::int64_t place = 0;
    for (std::size_t k = 0; k < places_.shape.size(); ++k) {
      Varying axis = along_row(places_.coordinates[k]);
      axis.extent = places_.shape[k];
      axis.stride = axis_strides_[k];
      if (axis.step != 0) {
        varying_[varying_count_++] = axis;
        continue;
      }
      const std::int64_t position =
          axis.table == nullptr ? axis.position : looked_up(*axis.table, axis.position);
      if (position < 0 || position >= axis.extent) return kOutside;
      place += position * axis.stride;
    }
    return place;
  }

  Varying along_row(const Coordinate& coordinate) const {
    Varying axis{nullptr, coordinate.offset, 0, 0, 0};
    const auto add = [&](Label label, std::int64_t stride) {
      axis.position += stride * index_[label];
      if (label + 1 == extents_.size()) axis.step += stride;
    };
    if (coordinate.index) {
      axis.table = &places_.index_arrays[coordinate.index->value.index];
      axis.position = axis.table->offset;
      for (std::size_t k = 0; k < coordinate.index->labels.size(); ++k)
        add(coordinate.index->labels[k], axis.table->strides[k]);
    } else {
      for (const Stride& s : coordinate.strides) add(s.label, s.stride);
    }
    return axis;
  }

  std::int64_t looked_up(const StridedView& table, std::int64_t at) const {
    return table.dtype == DType::i32 ? *context_.at<std::int32_t>(table.buffer, at)
                                     : *context_.at<std::int64_t>(table.buffer, at);
  }

  const RunContext& context_;
  const IndexedPlaces& places_;
  const Shape& extents_;
  std::int64_t row_;
  const Integers& axis_strides_;
  std::array<std::int64_t, kMost> index_;  ///< of the row; 0 for the last label
  std::array<Varying, kMost> varying_;
  std::size_t varying_count_ = 0;
};

template <class E>
class IndexedReadStep final : public Step {
 public:
  IndexedReadStep(IndexedPlaces places, const StridedView& source, const StridedView& out)
      : places_(std::move(places)),
        strides_(row_major_strides(places_.shape)),
        source_(source),
        out_(out),
        count_(out.count()) {}

  void run(const RunContext& context) const override {
    const E* source = context.at<E>(source_.buffer, source_.offset);
    E* out = context.at<E>(out_.buffer, out_.offset);
    PlaceRows rows(context, places_, strides_, out_.shape);
    for (std::int64_t done = 0; done < count_; done += rows.row(), rows.next_row())
      rows.visit_row([&](std::int64_t i, std::int64_t place) {
        out[done + i] = place == PlaceRows::kOutside ? E{0} : source[place];
      });
  }

 private:
  IndexedPlaces places_;
  Integers strides_;
  StridedView source_, out_;
  std::int64_t count_;
};

template <class E>
class IndexedAddStep final : public Step {
 public:
  IndexedAddStep(IndexedPlaces places, const StridedView& value, const StridedView& out, bool is_zero)
      : places_(std::move(places)),
        strides_(row_major_strides(places_.shape)),
        value_(value),
        out_(out),
        count_(value.count()),
        is_zero_(is_zero) {}

  void run(const RunContext& context) const override {
    const E* value = context.at<E>(value_.buffer, value_.offset);
    E* out = context.at<E>(out_.buffer, out_.offset);
    PlaceRows rows(context, places_, strides_, value_.shape);
    const std::int64_t step = value_.strides.empty() ? 0 : value_.strides.back();
    for (std::int64_t done = 0; done < count_; done += rows.row(), rows.next_row()) {
      std::int64_t at = 0;
      for (std::size_t axis = 0; axis < value_.strides.size(); ++axis)
        at += value_.strides[axis] * rows.index()[axis];
      rows.visit_row([&](std::int64_t i, std::int64_t place) {
        if (place == PlaceRows::kOutside) return;
        E& to = out[place];
        const E term = value[at + i * step];
        to = is_zero_ && to == E{0} ? term : to + term;
      });
    }
  }

 private:
  IndexedPlaces places_;
  Integers strides_;
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
