// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/clustered/key_metric.h"

namespace loipe::attention::clustered {

/// Sampled keys for each cluster at most; Lloyd's iterations.
inline constexpr std::int64_t kSampleOfCluster = 32, kIterations = 3;

/// Centres of one head of keys.
template <class T>
struct Centres {
  T* rows;         ///< [clusters padded][features]
  T* row_groups;   ///< the same in row groups
  T* half_square;  ///< [clusters padded], |c|^2 / 2; huge where there is none
  std::int64_t count;
};

/// What find_centres works in.
template <class T>
struct KMeansMemory {
  T *rows, *lanes;            // features of the sample: [sample][features], tiles [features][lanes]
  T *best, *index, *squares;  // [sample]: of the nearest centre; |x|^2
  T* sums;                    // [clusters padded][features]
  double* cumulative;         // [sample]; also the workspace of the metric
  std::int64_t* counts;       // [clusters padded]
};

template <class E>
Centres<Accumulator<E>> take_centres(const Plan<E>& plan, Arena& arena);
template <class E>
KMeansMemory<Accumulator<E>> take_kmeans_memory(const Plan<E>& plan, Arena& arena);

/// The metric and the centres of the keys of a head: seeds drawn from a sample in proportion to squared
/// distances (k-means++, kGroup at a time), then Lloyd's iterations on the sample. keys: the allowed ones, in
/// order. If there are no more than centres, each is one itself.
template <class E>
void find_centres(const Plan<E>& plan, std::int64_t key_head, std::span<const std::int32_t> keys,
                  KeyMetric<Accumulator<E>>& metric, Centres<Accumulator<E>>& centres,
                  const KMeansMemory<Accumulator<E>>& memory);

/// cluster[n] and squared distance of keys[n] to its centre. Workspace: [2 lanes][features] and [2 lanes].
template <class E>
void assign(const Plan<E>& plan, std::int64_t key_head, std::span<const std::int32_t> keys,
            const KeyMetric<Accumulator<E>>& metric, const Centres<Accumulator<E>>& centres,
            std::int32_t* cluster, Accumulator<E>* distance, Accumulator<E>* workspace);

}  // namespace loipe::attention::clustered
