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
  PanelPacking(const Geometry<E>& geometry, const Centres<E>& centres) : g_(geometry), centres_(centres) {}

  /// Memory for one panel; without cotangents the query panel has x alone.
  KeyPanel<E> take_keys(Arena& arena) const;
  QueryPanel<E> take_queries(Arena& arena, bool has_cotangents) const;
  E* take_scratch(Arena& arena) const;

  void load_keys(std::int64_t key_head, std::int64_t first, const KeyPanel<E>& to, E* scratch) const;
  void load_queries(std::int64_t head, std::int64_t first, bool has_blocks, const QueryPanel<E>& to,
                    E* scratch) const;
  /// d and d_blocks, from dL/do and the numbers of each row: dN = g / den, dden (of_denominators).
  void load_cotangents(const Rows<const E>& g, std::int64_t head, std::int64_t first, const E* reciprocals,
                       const E* of_denominators, const QueryPanel<E>& to, E* scratch) const;
  /// rows [lanes][head_size] of what is [size][lanes], out of the projection.
  void unpack_coordinates(std::int64_t key_head, const E* coordinates, E* rows, E* scratch) const;
  /// rows [lanes][columns] of what is [columns][lanes].
  void transpose_back(const E* in, std::int64_t columns, E* rows) const {
    g_.kernels.transpose(in, g_.lanes, rows, columns, columns, g_.lanes);
  }
  /// How many tokens a panel has of the `tokens` there are.
  std::int64_t count_at(std::int64_t first, std::int64_t tokens) const {
    return std::clamp<std::int64_t>(tokens - first, 0, g_.lanes);
  }

 private:
  void pack_coordinates(std::int64_t key_head, const E* rows, E* to, E* scratch) const;

  const Geometry<E>& g_;
  const Centres<E>& centres_;
};

}  // namespace loipe::attention::almost_linear
