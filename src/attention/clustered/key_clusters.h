// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/clustered/kmeans.h"

namespace loipe::attention::clustered {

/// The clusters of one head of keys.
template <class T>
struct KeyClusters {
  std::int64_t allowed;          ///< keys that the key mask allows; only those are numbered below
  std::int32_t* keys;            ///< [keys]: their positions
  std::int32_t* allowed_before;  ///< [keys + 1]: how many of them lie before a position
  std::int32_t* cluster;         ///< [keys], of the allowed ones in order
  std::int32_t* begin;           ///< [clusters + 1]: members of cluster c are begin[c]..begin[c + 1]-1
  std::int32_t* member;          ///< [keys]: allowed keys by cluster, in order within each
  std::int32_t* place;           ///< [keys]: where an allowed key is among the members
  T *k, *v;                      ///< [keys][head_size], [keys][value_size]: members, centred
  T* rank;                       ///< [clusters padded]: log2 of the spread of the logits in the cluster
  /// Of each set of means (Plan::sets) and cluster: members before the direct keys and before their end.
  std::int32_t *before, *until;  ///< [sets][clusters padded]
  T *k_mean, *v_mean;            ///< [sets][clusters padded][..], of the members outside
  T* count;                      ///< [sets][clusters padded], how many those are
  double value_variance;         ///< in each direction, of the allowed keys
  KeyMetric<T> metric;
  Centres<T> centres;
};

/// Computes the clusters of several heads at once.
template <class E>
class KeyClustering {
 public:
  using T = Accumulator<E>;
  KeyClustering(const Plan<E>& plan, std::int64_t heads_at_once, int threads, Arena& arena);

  /// Those of heads first..first+heads-1, heads <= heads_at_once. The means of the problem are known.
  void run(const Parallel& parallel, std::int64_t first, std::int64_t heads);
  /// Of the `position`-th head of the last run.
  const KeyClusters<T>& of(std::int64_t position) const { return heads_[position]; }

  /// Bytes for each head.
  static std::size_t bytes_of_head(const Plan<E>& plan);

 private:
  static KeyClusters<T> take(const Plan<E>& plan, Arena& arena);
  void list_allowed(std::int64_t key_head, KeyClusters<T>& c) const;
  void assign_range(std::int64_t key_head, std::int64_t range, const KeyClusters<T>& c, Arena memory) const;
  void sort_members(std::int64_t key_head, KeyClusters<T>& c) const;
  void rank_clusters(const KeyClusters<T>& c) const;
  void average(std::int64_t cluster, const KeyClusters<T>& c) const;

  const Plan<E>& plan_;
  KeyClusters<T>* heads_;
  ThreadMemory memory_;
};

}  // namespace loipe::attention::clustered
