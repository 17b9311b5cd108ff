// SPDX-License-Identifier: Apache-2.0
#include "attention/clustered/kmeans.h"

#include <cmath>

#include "base/rng.h"

namespace loipe::attention::clustered {

namespace {

/// What the square of a deviation of a value, relative to the mean square of values, counts in a distance
/// beside that of a logit: both deviations make relative errors of dX = w (<g, v> - D).
constexpr double kValueWeight = 0.3;
/// Mass that is added to that of each key, so that keys without any are clustered too.
constexpr double kLeastMass = 0.02;
constexpr double kFarAway = -1e30;

template <class E>
std::int64_t sample_size(const Plan<E>& plan, std::int64_t keys) {
  return std::min(keys, kSampleOfCluster * plan.clusters);
}

/// K-means on the sampled keys of one head.
template <class E>
class Lloyd {
 public:
  using T = Accumulator<E>;
  Lloyd(const Plan<E>& plan, std::int64_t key_head, std::int64_t sample, KeyMetric<T>& metric,
        const Centres<T>& centres, const KMeansMemory<T>& memory)
      : plan_(plan),
        m_(memory),
        metric_(metric),
        centres_(centres),
        d_(plan.centred.head_size),
        features_(features_of(plan)),
        sample_(sample),
        tiles_(divide_up(sample, plan.lanes)),
        rng_(plan.seed + 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(key_head)) {}

  void run() {
    const std::int64_t tile_size = plan_.lanes * features_;
    for (std::int64_t tile = 0; tile < tiles_; ++tile)
      plan_.centred.kernels.transpose(m_.rows + tile * tile_size, features_, m_.lanes + tile * tile_size,
                                      plan_.lanes, plan_.lanes, features_);
    weigh_values();
    draw_seeds();
    for (std::int64_t iteration = 0; iteration < kIterations; ++iteration) {
      if (iteration > 0) {
        forget_nearest();
        take_nearest({0, centres_.count});
      }
      move_centres();
    }
  }

 private:
  void forget_nearest() const {
    std::fill(m_.best, m_.best + tiles_ * plan_.lanes, static_cast<T>(kFarAway));
    std::fill(m_.index, m_.index + tiles_ * plan_.lanes, T{0});
  }
  void take_nearest(Span rows) const;
  double compute_squares() const;
  void weigh_values();
  void set_duals(Span rows) const;
  void draw_seeds();
  void move_centres() const;

  const Plan<E>& plan_;
  const KMeansMemory<T>& m_;
  KeyMetric<T>& metric_;
  const Centres<T>& centres_;
  std::int64_t d_, features_, sample_, tiles_;
  Rng rng_;
};

/// `rows` begins at a multiple of kGroup.
template <class E>
void Lloyd<E>::take_nearest(Span rows) const {
  NearestTile<T> t{};
  t.c = centres_.dual + rows.begin * features_, t.half_square = centres_.half_square + rows.begin;
  t.first = static_cast<T>(rows.begin);
  t.features = features_, t.rows = round_up(rows.count(), kGroup);
  for (std::int64_t tile = 0; tile < tiles_; ++tile) {
    t.x = m_.lanes + tile * plan_.lanes * features_;
    t.best = m_.best + tile * plan_.lanes, t.index = m_.index + tile * plan_.lanes;
    plan_.kernels.nearest(t);
  }
}

/// |x|^2 of the sample; returns their sum.
template <class E>
double Lloyd<E>::compute_squares() const {
  SquareTile<T> t{};
  t.factor = metric_.factor, t.value_weight = metric_.value_weight;
  t.head_size = d_, t.value_size = features_ - d_;
  for (std::int64_t tile = 0; tile < tiles_; ++tile) {
    t.k = m_.lanes + tile * plan_.lanes * features_, t.v = t.k + d_ * plan_.lanes;
    t.squares = m_.squares + tile * plan_.lanes;
    plan_.kernels.squares(t);
  }
  double sum = 0;
  for (std::int64_t n = 0; n < sample_; ++n) sum += static_cast<double>(m_.squares[n]);
  return sum;
}

template <class E>
void Lloyd<E>::weigh_values() {
  metric_.value_weight = 0;
  const double of_keys = compute_squares();
  metric_.value_weight = 1;
  const double of_values = compute_squares() - of_keys;
  metric_.value_weight =
      of_values > 0 ? static_cast<T>(kValueWeight * static_cast<double>(sample_) / of_values) : T{0};
  compute_squares();
}

/// Duals and squares of whole groups of centres, of which those from rows.end on are none.
template <class E>
void Lloyd<E>::set_duals(Span rows) const {
  for (std::int64_t begin = rows.begin; begin < rows.end; begin += kGroup) {
    for (std::int64_t n = 0; n < kGroup; ++n) {
      T *const row = centres_.rows + (begin + n) * features_, *const dual = m_.dual + n * features_;
      const bool is_centre = begin + n < rows.end;
      if (!is_centre) std::fill(row, row + features_, T{0});
      std::fill(dual, dual + d_, T{0});
      for (std::int64_t r = 0; r < d_; ++r)
        for (std::int64_t c = 0; c < d_; ++c) dual[c] += row[r] * metric_.moment[r * d_ + c];
      for (std::int64_t c = d_; c < features_; ++c) dual[c] = metric_.value_weight * row[c];
      T square = 0;
      for (std::int64_t c = 0; c < features_; ++c) square += row[c] * dual[c];
      centres_.half_square[begin + n] = is_centre ? square / 2 : static_cast<T>(-kFarAway);
    }
    to_row_groups(plan_.centred.kernels, m_.dual, kGroup, features_, centres_.dual + begin * features_);
  }
}

/// kGroup seeds at a time, one from each of as many equal parts of the sum of squared distances to the
/// nearest seed so far.
template <class E>
void Lloyd<E>::draw_seeds() {
  forget_nearest();
  for (std::int64_t begin = 0; begin < centres_.count; begin += kGroup) {
    const std::int64_t seeds = std::min<std::int64_t>(kGroup, centres_.count - begin);
    double sum = 0;
    for (std::int64_t n = 0; n < sample_; ++n) {
      const double square = static_cast<double>(m_.squares[n]);
      const double distance = begin == 0 ? 1.0 : std::max(square - 2 * static_cast<double>(m_.best[n]), 0.0);
      sum += distance * static_cast<double>(m_.weights[n]);
      m_.cumulative[n] = sum;
    }
    for (std::int64_t s = 0; s < seeds; ++s) {
      const double at = sum * (static_cast<double>(s) + rng_.uniform()) / static_cast<double>(seeds);
      const auto n = std::upper_bound(m_.cumulative, m_.cumulative + sample_ - 1, at) - m_.cumulative;
      std::copy_n(m_.rows + n * features_, features_, centres_.rows + (begin + s) * features_);
    }
    set_duals({begin, begin + seeds});
    take_nearest({begin, begin + seeds});
  }
}

/// To the weighted mean of those nearest, whose mean squared distance is mean |x|^2 - |c|^2; a centre without
/// any stays.
template <class E>
void Lloyd<E>::move_centres() const {
  const std::int64_t count = centres_.count;
  std::fill(m_.sums, m_.sums + count, 0.0);
  for (std::int64_t n = 0; n < sample_; ++n) {
    const auto c = static_cast<std::int64_t>(m_.index[n]);
    const T weight = m_.weights[n];
    T* const sum = centres_.rows + c * features_;
    if (m_.sums[c] == 0) {
      std::fill(sum, sum + features_, T{0});
      centres_.spread[c] = 0;
    }
    m_.sums[c] += static_cast<double>(weight);
    centres_.spread[c] += weight * m_.squares[n];
    for (std::int64_t f = 0; f < features_; ++f) sum[f] += weight * m_.rows[n * features_ + f];
  }
  for (std::int64_t c = 0; c < count; ++c) {
    if (m_.sums[c] == 0) continue;
    const T factor = static_cast<T>(1 / m_.sums[c]);
    for (std::int64_t f = 0; f < features_; ++f) centres_.rows[c * features_ + f] *= factor;
  }
  set_duals({0, count});
  for (std::int64_t c = 0; c < count; ++c)
    centres_.spread[c] =
        m_.sums[c] == 0
            ? T{0}
            : std::max(centres_.spread[c] / static_cast<T>(m_.sums[c]) - 2 * centres_.half_square[c], T{0});
}

/// The `heavy` keys of largest mass and, of the others, one from each of as many equal parts as there is room
/// for, in order; those of a part stand for all of it.
template <class E>
void draw_sample(std::int64_t keys, std::int64_t sample, std::int64_t heavy, const KMeansMemory<E>& m) {
  const auto weight = [&](std::int64_t n) {
    return static_cast<E>(std::sqrt(static_cast<double>(m.mass[n]) + kLeastMass));
  };
  if (sample == keys) {
    for (std::int64_t n = 0; n < keys; ++n)
      m.sample[n] = static_cast<std::int32_t>(n), m.weights[n] = weight(n);
    return;
  }
  for (std::int64_t n = 0; n < keys; ++n) m.heavy[n] = static_cast<std::int32_t>(n);
  std::nth_element(m.heavy, m.heavy + heavy, m.heavy + keys, [&](std::int32_t a, std::int32_t b) {
    return m.mass[a] != m.mass[b] ? m.mass[a] > m.mass[b] : a < b;
  });
  std::sort(m.heavy, m.heavy + heavy);
  const std::int64_t others = keys - heavy, room = sample - heavy;
  const E stands_for = static_cast<E>(others) / static_cast<E>(room);
  std::int64_t at = 0, next_heavy = 0, other = 0, drawn = 0;
  for (std::int64_t n = 0; n < keys; ++n) {
    const bool is_heavy = next_heavy < heavy && m.heavy[next_heavy] == n;
    if (is_heavy) ++next_heavy;
    else if (other++ != drawn * others / room || drawn == room) continue;
    else ++drawn;
    m.sample[at] = static_cast<std::int32_t>(n);
    m.weights[at++] = weight(n) * (is_heavy ? E{1} : stands_for);
  }
}

}  // namespace

template <class E>
Centres<Accumulator<E>> take_centres(const Plan<E>& plan, Arena& arena) {
  using T = Accumulator<E>;
  const std::int64_t numbers = plan.rows * features_of(plan);
  return {arena.take<T>(numbers), arena.take<T>(numbers), arena.take<T>(plan.rows), arena.take<T>(plan.rows),
          0};
}

template <class E>
KMeansMemory<Accumulator<E>> take_kmeans_memory(const Plan<E>& plan, Arena& arena) {
  using T = Accumulator<E>;
  const std::int64_t sample = round_up(sample_size(plan, plan.problem.shape.keys), plan.lanes);
  const std::int64_t features = features_of(plan), d = plan.centred.head_size;
  KMeansMemory<T> m{};
  m.rows = arena.take<T>(sample * features), m.lanes = arena.take<T>(sample * features);
  for (T** numbers : {&m.best, &m.index, &m.squares}) *numbers = arena.take<T>(sample);
  m.dual = arena.take<T>(kGroup * features);
  m.scratch = arena.take<T>(d * d);
  m.cumulative = arena.take<double>(std::max(sample, d * (d + 1)));
  m.weights = arena.take<T>(sample);
  m.mass = arena.take<T>(plan.problem.shape.keys);
  m.sample = arena.take<std::int32_t>(sample), m.heavy = arena.take<std::int32_t>(plan.problem.shape.keys);
  m.sums = arena.take<double>(plan.rows);
  m.of_mass = take_mass_memory(plan, arena);
  return m;
}

template <class E>
void find_centres(const Plan<E>& plan, std::int64_t key_head, std::span<const std::int32_t> keys,
                  const std::int32_t* allowed_before, KeyMetric<Accumulator<E>>& metric,
                  Centres<Accumulator<E>>& centres, const KMeansMemory<Accumulator<E>>& m) {
  using T = Accumulator<E>;
  const auto allowed = static_cast<std::int64_t>(keys.size());
  centres.count = std::min(plan.clusters, allowed);
  std::fill(centres.spread, centres.spread + plan.rows, T{0});
  if (allowed <= plan.clusters) return;
  compute_metric(plan, key_head, metric, m.cumulative, m.scratch);
  const std::int64_t sample = sample_size(plan, allowed), features = features_of(plan);
  compute_mass(plan, key_head, keys, allowed_before, m.mass, m.of_mass);
  draw_sample(allowed, sample, plan.clusters, m);
  std::fill(m.rows + sample * features, m.rows + round_up(sample, plan.lanes) * features, T{0});
  for (std::int64_t n = 0; n < sample; ++n)
    load_key_rows(plan, key_head, keys.data() + m.sample[n], 1, m.rows + n * features);
  Lloyd<E>(plan, key_head, sample, metric, centres, m).run();
}

template <class E>
AssignMemory<Accumulator<E>> take_assign_memory(const Plan<E>& plan, Arena& arena) {
  using T = Accumulator<E>;
  const std::int64_t numbers = plan.lanes * features_of(plan);
  return {arena.take<T>(numbers), arena.take<T>(numbers), arena.take<T>(plan.lanes),
          arena.take<T>(plan.lanes)};
}

template <class E>
void assign_keys(const Plan<E>& plan, std::int64_t key_head, std::span<const std::int32_t> keys,
                 const Centres<Accumulator<E>>& centres, std::int32_t* cluster,
                 const AssignMemory<Accumulator<E>>& m) {
  using T = Accumulator<E>;
  const std::int64_t lanes = plan.lanes, features = features_of(plan);
  const NearestTile<T> t{m.lanes,
                         centres.dual,
                         centres.half_square,
                         m.best,
                         m.index,
                         T{0},
                         features,
                         round_up(centres.count, kGroup)};
  const auto all = static_cast<std::int64_t>(keys.size());
  std::fill(m.rows, m.rows + lanes * features, T{0});
  for (std::int64_t begin = 0; begin < all; begin += lanes) {
    const std::int64_t count = std::min(lanes, all - begin);
    load_key_rows(plan, key_head, keys.data() + begin, count, m.rows);
    plan.centred.kernels.transpose(m.rows, features, m.lanes, lanes, lanes, features);
    std::fill(m.best, m.best + lanes, static_cast<T>(kFarAway));
    std::fill(m.index, m.index + lanes, T{0});
    plan.kernels.nearest(t);
    for (std::int64_t n = 0; n < count; ++n) cluster[begin + n] = static_cast<std::int32_t>(m.index[n]);
  }
}

#define LOIPE_INSTANTIATE(E)                                                                            \
  template Centres<Accumulator<E>> take_centres(const Plan<E>&, Arena&);                                \
  template KMeansMemory<Accumulator<E>> take_kmeans_memory(const Plan<E>&, Arena&);                     \
  template AssignMemory<Accumulator<E>> take_assign_memory(const Plan<E>&, Arena&);                     \
  template void find_centres(const Plan<E>&, std::int64_t, std::span<const std::int32_t>,               \
                             const std::int32_t*, KeyMetric<Accumulator<E>>&, Centres<Accumulator<E>>&, \
                             const KMeansMemory<Accumulator<E>>&);                                      \
  template void assign_keys(const Plan<E>&, std::int64_t, std::span<const std::int32_t>,                \
                            const Centres<Accumulator<E>>&, std::int32_t*,                              \
                            const AssignMemory<Accumulator<E>>&);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention::clustered
