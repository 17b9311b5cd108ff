// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/almost_linear/panels.h"

namespace loipe::attention::almost_linear {

/// Pairs of a panel of queries with one of keys, one by one: those of the same chunk, which the states do not
/// have, and near ones.
template <class E>
class PairTiles {
 public:
  struct Memory {
    E *weights, *slopes, *products;  ///< [lanes][lanes]
  };
  /// What becomes of the pairs: in a chunk of its own they are all there is, elsewhere near ones are
  /// corrected.
  struct Tile {
    std::int64_t key_head;
    std::int64_t distance;  ///< first query minus first key
    bool is_correction;
  };
  /// Sums that tiles add to; null: not wanted.
  struct Sums {
    E* q;  ///< [size][lanes]
    E* k;  ///< [lanes][size]
    E* v;  ///< [lanes][value_size]
  };

  PairTiles(const Geometry<E>& geometry, Arena& arena);
  void fill();
  Memory take(Arena& arena) const;

  /// numerators[pitch][lanes] += sum over keys of weight (v, 1).
  void add_weighted_values(const Tile& tile, const QueryPanel<E>& q, const KeyPanel<E>& k, E* numerators,
                           const Memory& m) const;
  void differentiate(const Tile& tile, const QueryPanel<E>& q, const KeyPanel<E>& k, const Sums& sums,
                     const Memory& m) const;

 private:
  void weigh(const Tile& tile, const QueryPanel<E>& q, const KeyPanel<E>& k, bool has_slopes,
             const Memory& m) const;

  const Geometry<E>& g_;
  int slope_degree_;
  E *polynomials_, *slopes_;  ///< [kv_heads][degree + 1]
};

}  // namespace loipe::attention::almost_linear
