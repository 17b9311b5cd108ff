// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/exact/attention.h"
#include "attention/exact/packing.h"

namespace loipe::attention {

/// What a thread of ForwardPass works in. Panels are `lanes` queries each.
template <class T>
struct ForwardMemory {
  // By panel.
  T *q, *o, *maximum, *sum;                         // [head_size][lanes], [value_size][lanes], [lanes] twice
  T *tq, *o_of_scores, *o_of_values, *tangent_sum;  // the same; with tangents
  // One tile of keys.
  T* rows;   // [max(kKeyRows, lanes)][max(head_size, value_size)], scratch
  T *k, *v;  // as ForwardTile has them
  T *tk, *tv;
  T *scores, *tangent_scores, *additive, *tangent_additive;  // [kKeyRows][lanes]
};

/// The sums of one query after all keys. Columns lie `lanes` apart.
template <class T>
struct QuerySums {
  T maximum, sum, tangent_sum;
  const T *o, *o_of_scores, *o_of_values;  ///< those of tangents null without tangents
  std::int64_t stride;
};

/// The running softmax of a range of queries over all keys, with tangents if there are any.
template <class E>
class ForwardPass {
 public:
  using T = Accumulator<E>;
  static constexpr std::int64_t kLargestRange = 512;  ///< queries at once; keys are packed once for them

  ForwardPass(const Centred<E>& centred, const InputTangents<E>* tangents)
      : centred_(centred), problem_(centred.problem), kernels_(centred.kernels), tangents_(tangents) {}

  /// How many queries at once: more need more memory, fewer more packing. Results are the same.
  std::int64_t range() const;
  ForwardMemory<T> take_memory(Arena& arena) const;

  /// finish(query, sums) for each of `count` <= range() queries from `first` on.
  template <class Finish>
  void run(std::int64_t head, std::int64_t first, std::int64_t count, const ForwardMemory<T>& memory,
           Finish&& finish) const {
    begin(head, first, count, memory);
    for (std::int64_t key = 0; key < problem_.shape.keys; key += kKeyRows)
      take_keys(head, first, count, key, memory);
    for (std::int64_t i = 0; i < count; ++i) finish(first + i, sums_of(i, memory));
  }

 private:
  void begin(std::int64_t head, std::int64_t first, std::int64_t count, const ForwardMemory<T>& memory) const;
  void take_keys(std::int64_t head, std::int64_t first, std::int64_t count, std::int64_t key,
                 const ForwardMemory<T>& memory) const;
  void pack_keys(const RowRange<T>& keys, const ForwardMemory<T>& memory) const;
  void pack_row_groups(const Rows<const E>& rows, const RowRange<T>& keys, T* scratch, T* out) const;
  void pack_column_groups(const Rows<const E>& rows, const RowRange<T>& keys, T* scratch, T* out) const;
  void pack_queries(const Rows<const E>& rows, const RowRange<T>& range, T* scratch, T* out) const;
  void take_tile(const TileRange& tile, KeyBlock block, std::int64_t panel,
                 const ForwardMemory<T>& memory) const;
  QuerySums<T> sums_of(std::int64_t position, const ForwardMemory<T>& memory) const;

  const Centred<E>& centred_;
  const Problem<E>& problem_;
  const TileKernels<T>& kernels_;
  const InputTangents<E>* tangents_;
};

}  // namespace loipe::attention
