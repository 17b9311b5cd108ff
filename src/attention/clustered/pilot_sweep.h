// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/clustered/importance.h"

namespace loipe::attention::clustered {

/// Errors of dQ of sampled queries, for several budgets at once: with p_c the exact part of cluster c in dQ
/// and f_c the one of its mean, a budget misses the sum of f_c - p_c over the clusters that it does not take.
/// Budgets differ in exact_keys alone, so that clusters and parts are computed once.
template <class E>
class PilotSweep {
 public:
  using T = Accumulator<E>;
  PilotSweep(const Problem<E>& problem, std::span<const Budget> budgets, const Pilot& pilot, int threads,
             Arena& arena);
  void run(const Saved<E>& saved, const Cotangents<E>& cotangents, std::span<double> errors,
           const Parallel& parallel);

 private:
  struct Memory {
    LaneTile<T> lanes;
    PackedMeans<T> means;
    RowStrip<T> strip;
    T *weights, *dx;      // as PairTile has them
    T* exact;             // [clusters padded + 1][head_size][lanes]: of each cluster, of the direct keys
    T* of_mean;           // [clusters padded][lanes]: dX of the means
    T* exact_mass;        // [clusters padded + 1][lanes]: weights of each cluster, of the direct keys
    T* mean_mass;         // [clusters padded][lanes]: weights of the means
    std::uint8_t* taken;  // [budgets][clusters padded][lanes]
    std::uint64_t* bits;  // [clusters padded]
    double* sums;         // [head_size]
    T *thresholds, *log_sizes;  // [lanes]
  };

  Memory take_memory(Arena& arena) const;
  /// Samples of a head in the tile, and sums of squares of the error of each budget and, last, of dQ.
  void take_tile(std::int64_t head, Span samples, const KeyClusters<T>& keys, double* squares,
                 Memory& m) const;
  std::int64_t query_of(std::int64_t head, std::int64_t sample) const;
  void load_query(std::int64_t head, std::int64_t query, std::int64_t lane, double value_variance,
                  const Memory& m) const;
  void take_means_of(std::int64_t query, std::int64_t lane, const KeyClusters<T>& keys, Memory& m) const;
  void take_direct(std::int64_t query, std::int64_t lane, const KeyClusters<T>& keys, const Memory& m) const;
  void take_cluster(std::int64_t cluster, std::int64_t head, Span samples, const KeyClusters<T>& keys,
                    const Memory& m) const;
  double factor_of_means(const std::uint8_t* taken, std::int64_t lane, const Memory& m) const;
  void add_squares(std::int64_t head, std::int64_t query, std::int64_t lane, const KeyClusters<T>& keys,
                   double* squares, const Memory& m) const;

  const Problem<E>& problem_;
  std::span<const Budget> budgets_;
  Pilot pilot_;
  Plan<E> plan_;
  std::int64_t rows_;  ///< sampled queries of a head
  KeyClustering<E> clustering_;
  double* squares_;       ///< [readers][budgets + 1]
  T* levels_;             ///< [budgets], of importance
  std::int64_t* wanted_;  ///< [budgets]: keys
  Saved<E> saved_{};
  Cotangents<E> cotangents_{};
  ThreadMemory memory_;
};

}  // namespace loipe::attention::clustered
