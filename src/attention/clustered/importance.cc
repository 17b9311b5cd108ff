// SPDX-License-Identifier: Apache-2.0
#include "attention/clustered/importance.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace loipe::attention::clustered {

namespace {

constexpr std::int64_t kSampledQueries = 96;
/// Of the range of levels, whose end is off by 2^-20 of it.
constexpr int kHalvings = 20;
/// Below this a row's importance is none: it has no keys, or no cotangent.
constexpr double kNone = -1e20;

/// Importance of all clusters for one sampled query.
template <class E>
void rank_for(const Plan<E>& plan, const KeyClusters<Accumulator<E>>& keys, std::int64_t query,
              const PackedCotangent<Accumulator<E>>& cotangent, const Accumulator<E>* q,
              Accumulator<E>* importance, Accumulator<E>* counts) {
  using T = Accumulator<E>;
  const std::int64_t d = plan.centred.head_size, set = plan.set_of(query / plan.block);
  for (std::int64_t c = 0; c < plan.rows; ++c) {
    const std::int64_t at = set * plan.rows + c;
    const T* const mean = keys.k_mean + at * d;
    counts[c] = keys.count[at];
    T score = keys.rank[c] - threshold_of(T{0}, cotangent.lse, cotangent.log_size);
    for (std::int64_t i = 0; i < d; ++i) score += q[i] * mean[i];
    importance[c] = counts[c] > 0 ? std::max(score, static_cast<T>(2 * kNone)) : static_cast<T>(2 * kNone);
  }
}

/// Bisection of what is above a level.
template <class T>
T level_of(double wanted, std::int64_t count, const ImportanceMemory<T>& m) {
  const auto above = [&](T level) {
    double sum = 0;
    for (std::int64_t n = 0; n < count; ++n)
      sum += m.importance[n] > level ? static_cast<double>(m.keys[n]) : 0;
    return sum;
  };
  if (wanted <= 0) return std::numeric_limits<T>::infinity();
  T low = std::numeric_limits<T>::max(), high = static_cast<T>(kNone);
  for (std::int64_t n = 0; n < count; ++n) {
    if (m.importance[n] < static_cast<T>(kNone)) continue;
    low = std::min(low, m.importance[n]), high = std::max(high, m.importance[n]);
  }
  low -= 1;
  if (above(low) <= wanted) return -std::numeric_limits<T>::infinity();
  for (int step = 0; step < kHalvings; ++step) {
    const T middle = low + (high - low) / 2;
    (above(middle) >= wanted ? low : high) = middle;
  }
  return low;
}

}  // namespace

template <class E>
ImportanceMemory<Accumulator<E>> take_importance_memory(const Plan<E>& plan, Arena& arena) {
  using T = Accumulator<E>;
  const std::int64_t all = kSampledQueries * plan.rows;
  return {arena.take<T>(plan.centred.head_size), arena.take<T>(plan.centred.value_size), arena.take<T>(all),
          arena.take<T>(all)};
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
    rank_for(plan, keys, query, packed, m.q, m.importance + n * plan.rows, m.keys + n * plan.rows);
  }
  for (std::size_t b = 0; b < wanted.size(); ++b)
    levels[b] = level_of(static_cast<double>(wanted[b] * samples), samples * plan.rows, m);
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
