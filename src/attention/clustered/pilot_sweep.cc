// SPDX-License-Identifier: Apache-2.0
#include "attention/clustered/pilot_sweep.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/clustered/gathering.h"
#include "base/rng.h"

namespace loipe::attention::clustered {

template <class E>
PilotSweep<E>::PilotSweep(const Problem<E>& problem, std::span<const Budget> budgets, const Pilot& pilot,
                          int threads, Arena& arena)
    : problem_(problem),
      budgets_(budgets),
      pilot_(pilot),
      plan_(problem, budgets.empty() ? Budget{} : budgets[0], arena),
      rows_(std::clamp<std::int64_t>(pilot.rows, 0, problem.shape.queries)),
      clustering_(plan_, 1, threads, arena),
      squares_(arena.take<double>(problem.shape.readers() * static_cast<std::int64_t>(budgets.size() + 1))),
      levels_(arena.take<T>(std::ssize(budgets))),
      wanted_(arena.take<std::int64_t>(std::ssize(budgets))) {
  Arena memory, sampling;
  take_memory(memory), take_importance_memory(plan_, sampling);
  memory_ = ThreadMemory(arena, std::max(memory.used(), sampling.used()), threads);
}

template <class E>
typename PilotSweep<E>::Memory PilotSweep<E>::take_memory(Arena& arena) const {
  const std::int64_t lanes = plan_.lanes, d = plan_.centred.head_size;
  Memory m{};
  m.lanes = take_lanes(plan_, arena);
  m.means = take_means(plan_, arena);
  m.strip = take_strip(plan_, kStripRows, arena);
  for (T** tile : {&m.weights, &m.dx}) *tile = arena.take<T>(kTileRows * lanes);
  m.exact = arena.take<T>((plan_.rows + 1) * d * lanes);
  m.of_mean = arena.take<T>(plan_.rows * lanes);
  m.exact_mass = arena.take<T>((plan_.rows + 1) * lanes), m.mean_mass = arena.take<T>(plan_.rows * lanes);
  m.taken = arena.take<std::uint8_t>(static_cast<std::int64_t>(budgets_.size()) * plan_.rows * lanes);
  m.bits = arena.take<std::uint64_t>(plan_.rows);
  m.sums = arena.take<double>(d);
  for (T** numbers : {&m.thresholds, &m.log_sizes}) *numbers = arena.take<T>(lanes);
  return m;
}

template <class E>
void PilotSweep<E>::run(const Saved<E>& saved, const Cotangents<E>& cotangents, std::span<double> errors,
                        const Parallel& parallel) {
  saved_ = saved, cotangents_ = cotangents;
  const auto columns = static_cast<std::int64_t>(budgets_.size() + 1);
  const std::int64_t readers = problem_.shape.readers();
  plan_.centred.compute_means(parallel);
  std::fill(errors.begin(), errors.end(), 0.0);
  double all = 0;
  for (std::size_t b = 0; b < budgets_.size(); ++b)
    wanted_[b] = std::max<std::int64_t>(budgets_[b].exact_keys, 0);
  for (std::int64_t key_head = 0; key_head < problem_.shape.kv_heads; ++key_head) {
    clustering_.run(parallel, key_head, 1);
    if (plan_.is_by_importance) {
      Arena sampling = memory_.of(0);
      find_levels(plan_, clustering_.of(0), key_head, saved_, cotangents_, {wanted_, budgets_.size()},
                  levels_, take_importance_memory(plan_, sampling));
    }
    std::fill_n(squares_, readers * columns, 0.0);
    for_each(parallel, readers, [&](std::int64_t reader, int thread) {
      Arena own = memory_.of(thread);
      Memory m = take_memory(own);
      for (std::int64_t begin = 0; begin < rows_; begin += plan_.lanes)
        take_tile(key_head * readers + reader, {begin, std::min(begin + plan_.lanes, rows_)},
                  clustering_.of(0), squares_ + reader * columns, m);
    });
    for (std::int64_t reader = 0; reader < readers; ++reader) {
      for (std::size_t b = 0; b < budgets_.size(); ++b)
        errors[b] += squares_[reader * columns + static_cast<std::int64_t>(b)];
      all += squares_[(reader + 1) * columns - 1];
    }
  }
  for (std::size_t b = 0; b < budgets_.size(); ++b)
    if (errors[b] > 0)
      errors[b] = all > 0 ? std::sqrt(errors[b] / all) : std::numeric_limits<double>::infinity();
}

/// One query from each of as many equal parts as there are samples.
template <class E>
std::int64_t PilotSweep<E>::query_of(std::int64_t head, std::int64_t sample) const {
  const std::int64_t queries = problem_.shape.queries;
  const std::int64_t begin = sample * queries / rows_, end = (sample + 1) * queries / rows_;
  Rng rng(pilot_.seed + 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(head * rows_ + sample + 1));
  return begin + rng.below(end - begin);
}

template <class E>
void PilotSweep<E>::take_tile(std::int64_t head, Span samples, const KeyClusters<T>& keys, double* squares,
                              Memory& m) const {
  const std::int64_t d = plan_.centred.head_size, lanes = plan_.lanes;
  std::fill_n(m.lanes.q_rows, lanes * d, T{0});
  std::fill_n(m.lanes.g_rows, lanes * plan_.centred.value_size, T{0});
  std::fill_n(m.lanes.lse, lanes, T{0});
  std::fill_n(m.lanes.mean, lanes, T{0});
  std::fill_n(m.exact, (plan_.rows + 1) * d * lanes, T{0});
  std::fill_n(m.exact_mass, (plan_.rows + 1) * lanes, T{0});
  for (std::int64_t l = 0; l < samples.count(); ++l) {
    const std::int64_t query = query_of(head, samples.begin + l);
    load_query(head, query, l, keys.value_variance, m);
    take_means_of(query, l, keys, m);
    take_direct(query, l, keys, m);
  }
  plan_.centred.kernels.transpose(m.lanes.q_rows, d, m.lanes.q, lanes, lanes, d);
  plan_.centred.kernels.transpose(m.lanes.g_rows, plan_.centred.value_size, m.lanes.g, lanes, lanes,
                                  plan_.centred.value_size);
  for (std::int64_t c = 0; c < plan_.clusters; ++c) take_cluster(c, head, samples, keys, m);
  for (std::int64_t l = 0; l < samples.count(); ++l)
    add_squares(head, query_of(head, samples.begin + l), l, keys, squares, m);
}

template <class E>
void PilotSweep<E>::load_query(std::int64_t head, std::int64_t query, std::int64_t lane,
                               double value_variance, const Memory& m) const {
  const std::int64_t d = plan_.centred.head_size, dv = plan_.centred.value_size;
  load_rows(problem_.q, RowRange<T>{head, query, 1, plan_.centred.query_factor()}, problem_.shape.head_size,
            m.lanes.q_rows + lane * d, d, 1);
  const PackedCotangent<T> packed =
      pack_cotangent(plan_, saved_, cotangents_, head, query, value_variance, m.lanes.g_rows + lane * dv);
  m.lanes.lse[lane] = packed.lse, m.lanes.mean[lane] = packed.mean;
  m.log_sizes[lane] = packed.log_size;
}

/// dX of the means, and what each budget takes. The kernel that chooses has the query in its first lane.
template <class E>
void PilotSweep<E>::take_means_of(std::int64_t query, std::int64_t lane, const KeyClusters<T>& keys,
                                  Memory& m) const {
  const std::int64_t d = plan_.centred.head_size, dv = plan_.centred.value_size, lanes = plan_.lanes;
  const std::int64_t set = plan_.set_of(query / plan_.block);
  const T *const q = m.lanes.q_rows + lane * d, *const g = m.lanes.g_rows + lane * dv;
  pack_means(plan_, keys, set, m.means);
  std::fill_n(m.lanes.q, d * lanes, T{0});
  for (std::int64_t c = 0; c < d; ++c) m.lanes.q[c * lanes] = q[c];
  m.lanes.count = 1;
  for (std::size_t b = 0; b < budgets_.size(); ++b) {
    if (plan_.is_by_importance)
      m.thresholds[0] = threshold_of(levels_[b], m.lanes.lse[lane], m.log_sizes[lane]);
    select(plan_, m.lanes, wanted_[b], plan_.is_by_importance ? m.thresholds : nullptr, m.means, m.bits);
    std::uint8_t* const taken = m.taken + static_cast<std::int64_t>(b) * plan_.rows * lanes;
    for (std::int64_t c = 0; c < plan_.rows; ++c) taken[c * lanes + lane] = m.bits[c] != 0;
  }
  for (std::int64_t c = 0; c < plan_.rows; ++c) {
    const std::int64_t at = set * plan_.rows + c;
    T score = m.means.log_count[c] - m.lanes.lse[lane], dp = -m.lanes.mean[lane];
    for (std::int64_t i = 0; i < d; ++i) score += q[i] * keys.k_mean[at * d + i];
    for (std::int64_t i = 0; i < dv; ++i) dp += g[i] * keys.v_mean[at * dv + i];
    m.mean_mass[c * lanes + lane] = std::exp2(score);
    m.of_mean[c * lanes + lane] = m.mean_mass[c * lanes + lane] * dp;
  }
}

template <class E>
void PilotSweep<E>::take_direct(std::int64_t query, std::int64_t lane, const KeyClusters<T>& keys,
                                const Memory& m) const {
  const std::int64_t d = plan_.centred.head_size, dv = plan_.centred.value_size, lanes = plan_.lanes;
  const Span direct = plan_.direct(query / plan_.block);
  const std::int64_t end = problem_.mask.is_causal ? std::min(query + 1, direct.end) : direct.end;
  const T *const q = m.lanes.q_rows + lane * d, *const g = m.lanes.g_rows + lane * dv;
  T* const sums = m.exact + plan_.rows * d * lanes;
  for (std::int64_t n = keys.allowed_before[direct.begin];
       n < keys.allowed_before[std::max(end, direct.begin)]; ++n) {
    const T *const k = keys.k + keys.place[n] * d, *const v = keys.v + keys.place[n] * dv;
    T score = -m.lanes.lse[lane], dp = -m.lanes.mean[lane];
    for (std::int64_t i = 0; i < d; ++i) score += q[i] * k[i];
    for (std::int64_t i = 0; i < dv; ++i) dp += g[i] * v[i];
    const T weight = std::exp2(score), dx = weight * dp;
    m.exact_mass[plan_.rows * lanes + lane] += weight;
    for (std::int64_t i = 0; i < d; ++i) sums[i * lanes + lane] += dx * k[i];
  }
}

template <class E>
void PilotSweep<E>::take_cluster(std::int64_t cluster, std::int64_t head, Span samples,
                                 const KeyClusters<T>& keys, const Memory& memory) const {
  const std::int64_t d = plan_.centred.head_size, dv = plan_.centred.value_size;
  Memory m = memory;
  PairTile<T> t{};
  t.q = m.lanes.q, t.g = m.lanes.g, t.q_rows = m.lanes.q_rows, t.g_rows = m.lanes.g_rows;
  t.lse = m.lanes.lse, t.mean = m.lanes.mean;
  t.until = m.lanes.piece_until, t.from = m.lanes.piece_from;
  t.weights = m.weights, t.dx = m.dx, t.dq = m.exact + cluster * d * plan_.lanes;
  t.head_size = d, t.value_size = dv;
  for (std::int64_t begin = keys.begin[cluster]; begin < keys.begin[cluster + 1]; begin += kTileRows) {
    const Span members{begin, std::min<std::int64_t>(begin + kTileRows, keys.begin[cluster + 1])};
    pack_strip(plan_, keys.k, keys.v, members.count(), m.strip,
               [&](std::int64_t n) { return members.begin + n; });
    m.lanes.count = 0;
    for (std::int64_t l = 0; l < samples.count(); ++l) {
      const std::int64_t block = query_of(head, samples.begin + l) / plan_.block;
      add_lane(m.lanes, l, limits_of(plan_, keys, block, cluster, members));
    }
    close_lanes(m.lanes, plan_.lanes);
    t.k = m.strip.k, t.v = m.strip.v, t.kc = m.strip.kc;
    t.rows = round_up(members.count(), kGroup), t.real_rows = members.count();
    t.mass = m.exact_mass + cluster * plan_.lanes;
    t.whole_rows = set_piece(m.lanes, plan_.lanes, 0, members.count());
    plan_.kernels.backward(t);
  }
}

/// As VjpSweep::fill_up_means has it.
template <class E>
double PilotSweep<E>::factor_of_means(const std::uint8_t* taken, std::int64_t lane, const Memory& m) const {
  const std::int64_t lanes = plan_.lanes;
  double rest = 1 - static_cast<double>(m.exact_mass[plan_.rows * lanes + lane]), of_means = 0;
  for (std::int64_t c = 0; c < plan_.clusters; ++c) {
    if (taken[c * lanes + lane] != 0) rest -= static_cast<double>(m.exact_mass[c * lanes + lane]);
    else of_means += static_cast<double>(m.mean_mass[c * lanes + lane]);
  }
  return of_means > 0 ? std::clamp(rest / of_means, 0.0, kLargestFactorOfMeans) : 1;
}

template <class E>
void PilotSweep<E>::add_squares(std::int64_t head, std::int64_t query, std::int64_t lane,
                                const KeyClusters<T>& keys, double* squares, const Memory& m) const {
  const std::int64_t d = plan_.centred.head_size, lanes = plan_.lanes;
  const std::int64_t set = plan_.set_of(query / plan_.block);
  const auto exact = [&](std::int64_t c, std::int64_t i) {
    return static_cast<double>(m.exact[(c * d + i) * lanes + lane]);
  };
  for (std::size_t b = 0; b < budgets_.size(); ++b) {
    const std::uint8_t* const taken = m.taken + static_cast<std::int64_t>(b) * plan_.rows * lanes;
    const double factor = factor_of_means(taken, lane, m);
    std::fill_n(m.sums, d, 0.0);
    for (std::int64_t c = 0; c < plan_.clusters; ++c) {
      if (taken[c * lanes + lane] != 0) continue;
      const double dx = factor * static_cast<double>(m.of_mean[c * lanes + lane]);
      const T* const mean = keys.k_mean + (set * plan_.rows + c) * d;
      for (std::int64_t i = 0; i < d; ++i) m.sums[i] += dx * static_cast<double>(mean[i]) - exact(c, i);
    }
    for (std::int64_t i = 0; i < d; ++i) squares[b] += m.sums[i] * m.sums[i];
  }
  const bool has_keys = m.lanes.lse[lane] < static_cast<T>(kNoKeys);
  const double of_mean = has_keys ? lse_cotangent(cotangents_, head, query) : 0.0;
  const T* const mean = plan_.centred.k_mean_of(problem_.shape.key_head(head));
  for (std::int64_t i = 0; i < d; ++i) {
    double sum = of_mean * static_cast<double>(mean[i]) + exact(plan_.rows, i);
    for (std::int64_t c = 0; c < plan_.clusters; ++c) sum += exact(c, i);
    squares[budgets_.size()] += sum * sum;
  }
}

template class PilotSweep<float>;
template class PilotSweep<double>;

}  // namespace loipe::attention::clustered
