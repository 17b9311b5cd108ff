// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/clustered/tiles.h"

namespace loipe::attention::clustered {

/// Blocks first..first+count-1 of all readers of one head of keys. The queries have slots, block by block and
/// reader by reader within a block: the queries in order, then those that are sampled once more. Those of a
/// last block that is not full stay empty.
struct ChunkRange {
  std::int64_t key_head, first, count;
};

/// The packed queries of a chunk and the clusters that each has taken.
template <class T>
struct QueryChunk {
  T* q;                  ///< [slots][head_size], times scale log2(e)
  T* g;                  ///< [slots][value_size]; derivatives only
  T* lse;                ///< [slots], centred and in base 2, huge where nothing counts; derivatives only
  T* mean;               ///< [slots], <g, o> - dL/dlse, with centred o; derivatives only
  T* log_size;           ///< [slots], see PackedCotangent; derivatives only
  T* factor;             ///< [slots], of g and mean; derivatives only
  std::int32_t* query;   ///< [slots]: position, -1 where the slot is empty
  std::uint64_t* taken;  ///< [slots / lanes][clusters padded]: bit l of a cluster is lane l
};

/// A block of queries of one reader.
struct BlockOfReader {
  std::int64_t head;  ///< of queries
  Span queries;
  std::int64_t block;  ///< of the head
  std::int64_t slot;   ///< of its first query
};

template <class E>
class QueryPacking {
 public:
  using T = Accumulator<E>;
  static constexpr std::int64_t kQueries = 8192;  ///< of a chunk, about

  explicit QueryPacking(const Plan<E>& plan) : plan_(plan) {}

  std::int64_t blocks_at_once() const {
    const std::int64_t queries = std::max<std::int64_t>(plan_.slots * plan_.problem.shape.readers(), 1);
    return std::clamp<std::int64_t>(kQueries / queries, 1, std::max<std::int64_t>(plan_.blocks, 1));
  }
  std::int64_t slots() const { return blocks_at_once() * plan_.problem.shape.readers() * plan_.slots; }
  QueryChunk<T> take(bool has_cotangents, Arena& arena) const {
    const std::int64_t n = slots(), derivatives = has_cotangents ? n : 0;
    return {arena.take<T>(n * plan_.centred.head_size),
            arena.take<T>(derivatives * plan_.centred.value_size),
            arena.take<T>(derivatives),
            arena.take<T>(derivatives),
            arena.take<T>(derivatives),
            arena.take<T>(derivatives),
            arena.take<std::int32_t>(n),
            arena.take<std::uint64_t>(n / plan_.lanes * plan_.rows)};
  }
  BlockOfReader block_of(const ChunkRange& range, std::int64_t block, std::int64_t reader) const {
    const std::int64_t readers = plan_.problem.shape.readers();
    return {range.key_head * readers + reader, plan_.queries_of(block), block,
            ((block - range.first) * readers + reader) * plan_.slots};
  }
  /// The queries, which have taken nothing yet.
  void pack_queries(const BlockOfReader& b, const QueryChunk<T>& chunk) const {
    for (std::int64_t row = 0; row < plan_.slots; ++row)
      chunk.query[b.slot + row] =
          row < b.queries.count() ? static_cast<std::int32_t>(b.queries.begin + row) : -1;
    std::fill_n(chunk.taken + b.slot / plan_.lanes * plan_.rows, plan_.slots / plan_.lanes * plan_.rows,
                std::uint64_t{0});
    const std::int64_t d = plan_.centred.head_size;
    const RowRange<T> rows{b.head, b.queries.begin, b.queries.count(), plan_.centred.query_factor()};
    load_rows(plan_.problem.q, rows, plan_.problem.shape.head_size, chunk.q + b.slot * d, d, plan_.slots);
  }
  /// g, lse, mean, log_size, and a factor of 1.
  void pack_cotangents(const BlockOfReader& b, const Saved<E>& saved, const Cotangents<E>& cotangents,
                       double value_variance, const QueryChunk<T>& chunk) const;

 private:
  const Plan<E>& plan_;
};

/// The weights of means are scaled up to so much at most.
inline constexpr double kLargestFactorOfMeans = 4;
/// An lse above this stands for a query that sees no key.
inline constexpr double kNoKeys = 1e29;

template <class T>
struct PackedCotangent {
  T lse, mean;  ///< as QueryChunk has them
  /// Base 2, of the root mean square of dL/dw over values of variance value_variance in each direction.
  T log_size;
};

/// What is packed of one query; g is 0 where there are no keys.
template <class E>
PackedCotangent<Accumulator<E>> pack_cotangent(const Plan<E>& plan, const Saved<E>& saved,
                                               const Cotangents<E>& cotangents, std::int64_t head,
                                               std::int64_t query, double value_variance, Accumulator<E>* g);

template <class E>
double lse_cotangent(const Cotangents<E>& cotangents, std::int64_t head, std::int64_t query) {
  return cotangents.lse ? static_cast<double>(get(cotangents.lse, head, query, 0)) : 0.0;
}

/// The means of one set, packed, with what clusters are chosen by.
template <class T>
struct PackedMeans {
  RowStrip<T> strip;
  T *rank, *count, *log_count;  ///< [clusters padded]
  T *scores, *additive;         ///< [clusters padded][lanes]
};

template <class E>
PackedMeans<Accumulator<E>> take_means(const Plan<E>& plan, Arena& arena);
template <class E>
void pack_means(const Plan<E>& plan, const KeyClusters<Accumulator<E>>& keys, std::int64_t set,
                const PackedMeans<Accumulator<E>>& means);
/// The clusters that the gathered queries take, those of highest rank up to `exact_keys` keys or, where
/// `thresholds` [lanes] are given, those ranked above: `taken` [clusters padded], and means.additive, the
/// logarithm of the number of keys for those that they do not take and -inf for those that they do.
template <class E>
void select(const Plan<E>& plan, const LaneTile<Accumulator<E>>& lanes, std::int64_t exact_keys,
            const Accumulator<E>* thresholds, const PackedMeans<Accumulator<E>>& means, std::uint64_t* taken);

}  // namespace loipe::attention::clustered
