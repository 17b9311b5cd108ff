// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/almost_linear/centres.h"

namespace loipe::attention::almost_linear {

/// Keys and values of one panel, packed.
template <class T>
struct KeyPanel {
  T* x;       ///< [size][lanes]: coordinates of centred keys
  T* v;       ///< [pitch][lanes]: values, then 1 for admitted keys and 0 for others
  T* blocks;  ///< column blocks of the values
  const T* admitted(std::int64_t value_size, std::int64_t lanes) const { return v + value_size * lanes; }
};

/// Queries of one panel and the cotangents of their numerators and denominators, packed.
template <class T>
struct QueryPanel {
  T* x;         ///< [size][lanes]: coordinates, times the scale
  T* x_blocks;  ///< column blocks of them
  T* d;         ///< [pitch][lanes]: dL/dN, then dL/dden
  T* d_blocks;  ///< column blocks of dL/dN
};

/// From the caller's rows to panels and back.
template <class E>
class PanelPacking {
 public:
  PanelPacking(const Geometry<E>& geometry, const Centres<E>& centres, Arena& arena);
  void fill();

  /// Memory for `panels` panels, and the panel at a place of it. Without cotangents a panel of queries has x
  /// alone.
  E* take_keys(std::int64_t panels, Arena& arena) const { return arena.take<E>(panels * key_numbers()); }
  KeyPanel<E> keys_at(E* memory, std::int64_t panel) const;
  E* take_queries(std::int64_t panels, bool has_cotangents, Arena& arena) const;
  QueryPanel<E> queries_at(E* memory, std::int64_t panel) const;
  E* take_scratch(Arena& arena) const;

  void load_keys(std::int64_t key_head, std::int64_t first, const KeyPanel<E>& to, E* scratch) const;
  void load_queries(std::int64_t head, std::int64_t first, bool has_blocks, const QueryPanel<E>& to,
                    E* scratch) const;
  /// d and d_blocks, from dL/do and the numbers of each row: dN = g / den, dden (of_denominators).
  void load_cotangents(const Rows<const E>& g, std::int64_t head, std::int64_t first, const E* reciprocals,
                       const E* of_denominators, const QueryPanel<E>& to, E* scratch) const;

  /// [head_size][lanes] of coordinates [size][lanes], out of the projection, where there is one.
  E* unproject(std::int64_t key_head, E* coordinates, E* scratch) const;
  /// Times the scale, for [head_size][lanes].
  void scale(E* lanes) const { g_.kernels.adjust(lanes, g_.head_size, nullptr, scales_); }
  /// For rows of a panel that are to be written or added to after the work on it.
  void prefetch(const Rows<E>& to, std::int64_t head, std::int64_t first, std::int64_t tokens) const;
  /// Writes tokens first .. of what is [columns][lanes]; `width` is the padded count of columns.
  void store(const E* in, std::int64_t width, const Rows<E>& to, std::int64_t head, std::int64_t first,
             std::int64_t tokens, std::int64_t columns, E* scratch) const;
  /// How many tokens a panel has of the `tokens` there are.
  std::int64_t count_at(std::int64_t first, std::int64_t tokens) const {
    return std::clamp<std::int64_t>(tokens - first, 0, g_.lanes);
  }

 private:
  /// Rows of a panel: where they lie, or copied if they are not all there side by side.
  struct Source {
    const E* rows;
    std::int64_t stride;
    bool is_copied;  ///< and then with factor and shift
  };
  Source source(const Rows<const E>& from, const RowRange<E>& range, std::int64_t columns, std::int64_t width,
                E* scratch) const;
  std::int64_t key_numbers() const { return g_.panel_of(g_.size + g_.pitch + g_.value_size); }
  std::int64_t query_numbers() const { return key_numbers() + g_.panel_of(g_.size); }
  void project(std::int64_t key_head, const E* in, E* to) const;

  const Geometry<E>& g_;
  const Centres<E>& centres_;
  E* scales_;  ///< [lanes]: the scale
};

}  // namespace loipe::attention::almost_linear
