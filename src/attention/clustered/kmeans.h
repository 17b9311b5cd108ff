// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/clustered/key_mass.h"

namespace loipe::attention::clustered {

/// Sampled keys for each cluster at most; Lloyd's iterations.
inline constexpr std::int64_t kSampleOfCluster = 16, kIterations = 3;

/// Centres of one head of keys, as rows of KeyMetric.
template <class T>
struct Centres {
  T* rows;         ///< [clusters padded][features]
  T* dual;         ///< row groups: a row times a centre's is their scalar product in the metric
  T* half_square;  ///< [clusters padded], half of |c|^2; huge where there is none
  T* spread;       ///< [clusters padded], mean squared distance of the sampled keys of a cluster
  std::int64_t count;
};

/// What find_centres works in.
template <class T>
struct KMeansMemory {
  T *rows, *lanes;               // the sample: [sample][features], tiles [features][lanes]
  T *best, *index, *squares;     // [sample]: of the nearest centre; |x|^2
  T* weights;                    // [sample]
  T* mass;                       // [keys]
  std::int32_t *sample, *heavy;  // [sample], [keys]: which keys, counted among the allowed ones
  T* dual;                       // [kGroup][features]
  T* scratch;                    // [head_size][head_size]
  double* cumulative;            // [sample]; also the workspace of the metric
  double* sums;                  // [clusters padded]: of weights
  MassMemory<T> of_mass;
};

template <class E>
Centres<Accumulator<E>> take_centres(const Plan<E>& plan, Arena& arena);
template <class E>
KMeansMemory<Accumulator<E>> take_kmeans_memory(const Plan<E>& plan, Arena& arena);

/// The metric and the centres of the keys of a head by k-means on a sample, each key weighted by the root of
/// its mass: seeds drawn in proportion to weighted squared distances (k-means++, kGroup at a time), then
/// Lloyd's iterations. keys: the positions of the allowed ones, in order; allowed_before as KeyClusters has
/// it. If there are no more keys than centres, nothing is computed: each is one itself.
template <class E>
void find_centres(const Plan<E>& plan, std::int64_t key_head, std::span<const std::int32_t> keys,
                  const std::int32_t* allowed_before, KeyMetric<Accumulator<E>>& metric,
                  Centres<Accumulator<E>>& centres, const KMeansMemory<Accumulator<E>>& memory);

/// What assign_keys works in.
template <class T>
struct AssignMemory {
  T *rows, *lanes;  // [lanes][features] and the transpose
  T *best, *index;  // [lanes]
};

template <class E>
AssignMemory<Accumulator<E>> take_assign_memory(const Plan<E>& plan, Arena& arena);
/// cluster[n] of keys[n]: that of the nearest centre.
template <class E>
void assign_keys(const Plan<E>& plan, std::int64_t key_head, std::span<const std::int32_t> keys,
                 const Centres<Accumulator<E>>& centres, std::int32_t* cluster,
                 const AssignMemory<Accumulator<E>>& memory);

}  // namespace loipe::attention::clustered
