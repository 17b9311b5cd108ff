// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "attention/clustered/query_chunk.h"

// Which clusters are worth a look at their keys one by one, over all queries of a head.
//
// What the derivatives lose on a cluster of which a query sees the mean alone is about, for each of its keys,
// weight times spread of its logits times size of the query's row (PackedCotangent::log_size). All queries
// take the clusters in which that is above one level: for any number of pairs in all this leaves less than
// the same number for each query, the more the more rows differ. The level that gives a wanted mean number of
// keys is found on sampled queries.

namespace loipe::attention::clustered {

/// A cluster for a sampled query, and how many keys it sees there.
template <class T>
struct RankedCluster {
  T importance;  ///< base 2
  T keys;
};

/// What find_levels works in.
template <class T>
struct ImportanceMemory {
  T *q, *g;                    // [head_size], [value_size]
  RankedCluster<T>* clusters;  // [samples][clusters padded]
};

template <class E>
ImportanceMemory<Accumulator<E>> take_importance_memory(const Plan<E>& plan, Arena& arena);

/// levels[b]: that above which the queries of a head of keys take wanted[b] keys in the mean; -inf where that
/// is more than they see, infinite for 0.
template <class E>
void find_levels(const Plan<E>& plan, const KeyClusters<Accumulator<E>>& keys, std::int64_t key_head,
                 const Saved<E>& saved, const Cotangents<E>& cotangents, std::span<const std::int64_t> wanted,
                 Accumulator<E>* levels, const ImportanceMemory<Accumulator<E>>& memory);

/// The rank above which a query takes clusters.
template <class T>
T threshold_of(T level, T lse, T log_size) {
  return level + (lse - log_size);
}

}  // namespace loipe::attention::clustered
