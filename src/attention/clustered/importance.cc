// SPDX-License-Identifier: Apache-2.0
#include "attention/clustered/importance.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace loipe::attention::clustered {

namespace {

constexpr std::int64_t kSampledQueries = 64;

/// Importance of all clusters for one sampled query; -inf of those that it does not see, and without
/// cotangent.
template <class E>
void rank_for(const Plan<E>& plan, const KeyClusters<Accumulator<E>>& keys, std::int64_t query,
              const PackedCotangent<Accumulator<E>>& cotangent, const Accumulator<E>* q,
              RankedCluster<Accumulator<E>>* clusters) {
  using T = Accumulator<E>;
  const std::int64_t d = plan.centred.head_size, set = plan.set_of(query / plan.block);
  for (std::int64_t c = 0; c < plan.rows; ++c) {
    const std::int64_t at = set * plan.rows + c;
    const T* const mean = keys.k_mean + at * d;
    T score = keys.rank[c] - threshold_of(T{0}, cotangent.lse, cotangent.log_size);
    for (std::int64_t i = 0; i < d; ++i) score += q[i] * mean[i];
    const bool counts = keys.count[at] > 0 && score > static_cast<T>(-kNoKeys);
    clusters[c] = {counts ? score : -std::numeric_limits<T>::infinity(), keys.count[at]};
  }
}

/// Between the last one, in falling order, of `wanted` keys and the first beyond: of neither by rounding
/// alone.
template <class T>
T level_of(double wanted, std::span<const RankedCluster<T>> clusters) {
  if (wanted <= 0) return std::numeric_limits<T>::infinity();
  double keys = 0;
  for (std::size_t n = 0; n < clusters.size(); ++n) {
    if (keys >= wanted) return (clusters[n - 1].importance + clusters[n].importance) / 2;
    keys += static_cast<double>(clusters[n].keys);
  }
  return -std::numeric_limits<T>::infinity();
}

}  // namespace

template <class E>
ImportanceMemory<Accumulator<E>> take_importance_memory(const Plan<E>& plan, Arena& arena) {
  using T = Accumulator<E>;
  return {arena.take<T>(plan.centred.head_size), arena.take<T>(plan.centred.value_size),
          arena.take<RankedCluster<T>>(kSampledQueries * plan.rows)};
}

/// One query from the middle of each of as many equal parts of those of all readers.
template <class E>
void find_levels(const Plan<E>& plan, const KeyClusters<Accumulator<E>>& keys, std::int64_t key_head,
                 const Saved<E>& saved, const Cotangents<E>& cotangents, std::span<const std::int64_t> wanted,
                 Accumulator<E>* levels, const ImportanceMemory<Accumulator<E>>& m) {
  using T = Accumulator<E>;
  const Shape& s = plan.problem.shape;
  const std::int64_t all = s.readers() * s.queries, samples = std::min(all, kSampledQueries);
  for (std::int64_t n = 0; n < samples; ++n) {
    const std::int64_t at = (2 * n + 1) * all / (2 * samples), query = at % s.queries;
    const std::int64_t head = key_head * s.readers() + at / s.queries;
    load_rows(plan.problem.q, RowRange<T>{head, query, 1, plan.centred.query_factor()}, s.head_size, m.q,
              plan.centred.head_size, 1);
    const PackedCotangent<T> packed =
        pack_cotangent(plan, saved, cotangents, head, query, keys.value_variance, m.g);
    rank_for(plan, keys, query, packed, m.q, m.clusters + n * plan.rows);
  }
  const std::span<RankedCluster<T>> clusters(m.clusters, static_cast<std::size_t>(samples * plan.rows));
  std::ranges::sort(clusters, std::greater{}, &RankedCluster<T>::importance);
  for (std::size_t b = 0; b < wanted.size(); ++b)
    levels[b] = level_of<T>(static_cast<double>(wanted[b] * samples), clusters);
}

#define LOIPE_INSTANTIATE(E)                                                                      \
  template ImportanceMemory<Accumulator<E>> take_importance_memory(const Plan<E>&, Arena&);       \
  template void find_levels(const Plan<E>&, const KeyClusters<Accumulator<E>>&, std::int64_t,     \
                            const Saved<E>&, const Cotangents<E>&, std::span<const std::int64_t>, \
                            Accumulator<E>*, const ImportanceMemory<Accumulator<E>>&);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention::clustered
