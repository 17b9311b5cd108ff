// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "attention/element.h"
#include "attention/exact/attention.h"
#include "base/rng.h"

namespace loipe::attention::testing {

/// An array [heads, rows, columns] in a memory of its own, in one of several layouts with
/// gaps that hold NaN, so that reading or writing outside shows.
template <class E>
class Array {
 public:
  Array() = default;
  Array(std::int64_t heads, std::int64_t rows, std::int64_t columns, Rng& rng)
      : heads_(heads), rows_(rows), columns_(columns) {
    const std::int64_t gap = rng.below(3), layout = rng.below(4);
    if (layout == 0) set_strides(rows * (columns + gap), columns + gap, 1);
    else if (layout == 1) set_strides(columns + gap, heads * (columns + gap), 1);  // heads interleaved
    else if (layout == 2) set_strides(rows * (columns + gap), 1, rows);            // transposed
    else set_strides(rows * (columns + gap) * 2, -(columns + gap) * 2, -2);        // backwards
    elements_.assign(static_cast<std::size_t>(span_ + 1), gap_element());
  }

  Rows<E> rows() { return {elements_.data() + origin_, head_stride_, row_stride_, column_stride_}; }
  Rows<const E> rows() const {
    return {elements_.data() + origin_, head_stride_, row_stride_, column_stride_};
  }
  std::int64_t heads() const { return heads_; }
  std::int64_t row_count() const { return rows_; }
  std::int64_t columns() const { return columns_; }

  template <class Value>
  void fill(Value&& value) {
    for (std::int64_t h = 0; h < heads_; ++h)
      for (std::int64_t i = 0; i < rows_; ++i)
        for (std::int64_t c = 0; c < columns_; ++c)
          set(rows(), h, i, c, static_cast<Accumulator<E>>(value(h, i, c)));
  }
  void fill_normal(Rng& rng, double size = 1, double offset = 0) {
    fill([&](auto...) { return offset + size * rng.normal(); });
  }
  double at(std::int64_t h, std::int64_t i, std::int64_t c) const { return get(rows(), h, i, c); }

  /// How many elements are not NaN: those of the array, and what was written outside.
  std::int64_t written() const {
    return std::ranges::count_if(elements_, [](E e) { return !std::isnan(to_accumulator(e)); });
  }
  bool operator==(const Array& other) const {
    return std::ranges::equal(elements_, other.elements_,
                              [](E a, E b) { return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b); });
  }

 private:
  using Bits = std::conditional_t<sizeof(E) == 8, std::uint64_t,
                                  std::conditional_t<sizeof(E) == 4, std::uint32_t, std::uint16_t>>;
  static E gap_element() { return to_element<E>(std::numeric_limits<Accumulator<E>>::quiet_NaN()); }
  void set_strides(std::int64_t head, std::int64_t row, std::int64_t column) {
    head_stride_ = head, row_stride_ = row, column_stride_ = column;
    const std::pair<std::int64_t, std::int64_t> axes[] = {{heads_, head}, {rows_, row}, {columns_, column}};
    for (const auto& [extent, stride] : axes) {
      if (extent == 0) continue;
      span_ += (extent - 1) * std::abs(stride);
      if (stride < 0) origin_ -= (extent - 1) * stride;
    }
  }

  std::int64_t heads_ = 0, rows_ = 0, columns_ = 0;
  std::int64_t head_stride_ = 0, row_stride_ = 0, column_stride_ = 1, span_ = 0, origin_ = 0;
  std::vector<E> elements_;
};

/// A problem with everything that its derivatives need, drawn at random.
template <class E>
struct Case {
  using T = Accumulator<E>;
  Shape shape{};
  double scale = 1;
  bool is_causal = false;
  std::int64_t window = 0;
  std::vector<std::uint8_t> key_mask;  ///< empty: none
  std::int64_t key_mask_head_stride = 0;
  std::vector<T> bias, bias_tangent;  ///< empty: none
  Rows<const T> bias_strides{};
  Array<E> q, k, v, g, tq, tk, tv, tg;
  Array<T> glse, tglse;

  Mask<T> mask() const {
    return {is_causal, window, key_mask.empty() ? nullptr : key_mask.data(), key_mask_head_stride,
            with_strides_of_bias(bias)};
  }
  /// Absent when there is no bias.
  template <class Elements>
  auto with_strides_of_bias(Elements& elements) const {
    Rows<std::remove_reference_t<decltype(elements[0])>> rows;
    rows.data = elements.empty() ? nullptr : elements.data();
    rows.head_stride = bias_strides.head_stride, rows.row_stride = bias_strides.row_stride;
    rows.column_stride = bias_strides.column_stride;
    return rows;
  }
  Problem<E> problem() const { return {shape, scale, mask(), q.rows(), k.rows(), v.rows()}; }
  Cotangents<E> cotangents() const { return {g.rows(), glse.rows()}; }
  Cotangents<E> cotangent_tangents() const { return {tg.rows(), tglse.rows()}; }
  InputTangents<E> tangents() const {
    return {tq.rows(), tk.rows(), tv.rows(), with_strides_of_bias(bias_tangent)};
  }
  std::string text() const {
    std::string text;
    for (const std::int64_t extent : {shape.heads, shape.kv_heads, shape.queries, shape.keys, shape.head_size,
                                      shape.value_size, std::int64_t{is_causal}, window})
      text += std::to_string(extent) + " ";
    return text + (key_mask.empty() ? "" : "key mask ") + (bias.empty() ? "" : "bias");
  }
};

/// Fills a case whose shape and masks are set.
template <class E>
void fill(Case<E>& c, Rng& rng, double offset = 0) {
  const Shape& s = c.shape;
  c.q = Array<E>(s.heads, s.queries, s.head_size, rng), c.tq = Array<E>(s.heads, s.queries, s.head_size, rng);
  c.k = Array<E>(s.kv_heads, s.keys, s.head_size, rng), c.tk = Array<E>(s.kv_heads, s.keys, s.head_size, rng);
  c.v = Array<E>(s.kv_heads, s.keys, s.value_size, rng),
  c.tv = Array<E>(s.kv_heads, s.keys, s.value_size, rng);
  c.g = Array<E>(s.heads, s.queries, s.value_size, rng),
  c.tg = Array<E>(s.heads, s.queries, s.value_size, rng);
  c.glse = Array<Accumulator<E>>(s.heads, s.queries, 1, rng);
  c.tglse = Array<Accumulator<E>>(s.heads, s.queries, 1, rng);
  for (Array<E>* array : {&c.q, &c.tq, &c.tk, &c.tv, &c.g, &c.tg}) array->fill_normal(rng);
  c.k.fill_normal(rng, 1, offset), c.v.fill_normal(rng, 1, offset);
  c.glse.fill_normal(rng), c.tglse.fill_normal(rng);
  c.scale = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(s.head_size, 1)));
}

/// Masks keys (their elements become NaN: they are never read), and adds a bias of a random
/// shape with some -inf.
template <class E>
void add_masks(Case<E>& c, Rng& rng) {
  const Shape& s = c.shape;
  if (rng.chance(0.4)) {
    const bool is_shared = rng.chance(0.5);
    c.key_mask.resize(static_cast<std::size_t>((is_shared ? 1 : s.kv_heads) * s.keys));
    const double density = rng.uniform();
    for (auto& allowed : c.key_mask) allowed = rng.chance(density);
    c.key_mask_head_stride = is_shared ? 0 : s.keys;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto hide = [&](Array<E>& array) {
      array.fill([&](std::int64_t h, std::int64_t j, std::int64_t column) {
        return c.key_mask[static_cast<std::size_t>(h * c.key_mask_head_stride + j)] ? array.at(h, j, column)
                                                                                    : nan;
      });
    };
    for (Array<E>* array : {&c.k, &c.v, &c.tk, &c.tv}) hide(*array);
  }
  if (rng.chance(0.4)) {
    const bool by_head = rng.chance(0.5), by_row = rng.chance(0.5), by_key = rng.chance(0.8);
    const std::int64_t key = by_key ? 1 : 0, row = by_row ? s.keys : 0,
                       head = by_head ? s.queries * s.keys : 0;
    const std::int64_t count = std::max<std::int64_t>(s.heads * s.queries * s.keys, 1);
    for (std::int64_t i = 0; i < count; ++i) {
      c.bias.push_back(rng.chance(0.1) ? -std::numeric_limits<Accumulator<E>>::infinity()
                                       : static_cast<Accumulator<E>>(rng.normal()));
      c.bias_tangent.push_back(static_cast<Accumulator<E>>(rng.normal()));
    }
    c.bias_strides = {nullptr, head, row, key};
  }
}

inline std::int64_t random_extent(Rng& rng, std::int64_t largest) {
  constexpr std::int64_t kCorners[] = {0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 129};
  const std::int64_t extent = rng.chance(0.3) ? kCorners[rng.below(11)] : 1 + rng.below(largest);
  return std::min(extent, largest);
}

template <class E>
Case<E> random_case(Rng& rng, std::int64_t largest = 200) {
  Case<E> c;
  const std::int64_t kv_heads = 1 + rng.below(3);
  constexpr std::int64_t kSizes[] = {1, 3, 5, 8, 16, 24, 32, 40, 64, 65};
  c.shape = {kv_heads * (1 + rng.below(3)), kv_heads,
             random_extent(rng, largest),   random_extent(rng, largest),
             kSizes[rng.below(10)],         0};
  c.shape.value_size = rng.chance(0.6) ? c.shape.head_size : kSizes[rng.below(10)];
  c.is_causal = rng.chance(0.5);
  c.window = rng.chance(0.3) ? 1 + rng.below(largest) : 0;
  fill(c, rng, rng.chance(0.3) ? 10 : 0);
  add_masks(c, rng);
  return c;
}

/// Largest deviation over the largest entry of `expected`; infinity where NaN or infinities differ.
template <class A, class B>
double deviation(const Array<A>& got, const Array<B>& expected) {
  double largest = 0, difference = 0;
  for (std::int64_t h = 0; h < expected.heads(); ++h)
    for (std::int64_t i = 0; i < expected.row_count(); ++i)
      for (std::int64_t c = 0; c < expected.columns(); ++c) {
        const double a = got.at(h, i, c), b = expected.at(h, i, c);
        if (std::isnan(a) && std::isnan(b)) continue;  // not written, by neither
        if (a == b) {
          if (std::isfinite(b)) largest = std::max(largest, std::abs(b));
          continue;
        }
        if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
        largest = std::max(largest, std::abs(b));
        difference = std::max(difference, std::abs(a - b));
      }
  return difference == 0 ? 0 : difference / largest;
}

}  // namespace loipe::attention::testing
