// SPDX-License-Identifier: Apache-2.0
#include "attention/clustered/kmeans.h"

#include <cmath>

#include "base/rng.h"

namespace loipe::attention::clustered {

namespace {

/// Root mean square of the values' features over that of the keys': keys whose logits nearly agree are kept
/// together by their values.
constexpr double kValueWeight = 0.15;

template <class E>
std::int64_t sample_size(const Plan<E>& plan, std::int64_t keys) {
  return std::min(keys, kSampleOfCluster * plan.clusters);
}

template <class T>
double root_mean_square(const T* rows, std::int64_t count, std::int64_t width, Span columns) {
  double sum = 0;
  for (std::int64_t n = 0; n < count; ++n)
    for (std::int64_t c = columns.begin; c < columns.end; ++c)
      sum += static_cast<double>(rows[n * width + c]) * static_cast<double>(rows[n * width + c]);
  return std::sqrt(sum / static_cast<double>(std::max<std::int64_t>(count, 1)));
}

/// K-means on the sampled features of one head.
template <class E>
class Lloyd {
 public:
  using T = Accumulator<E>;
  Lloyd(const Plan<E>& plan, std::int64_t key_head, std::int64_t sample, const Centres<T>& centres,
        const KMeansMemory<T>& memory)
      : plan_(plan),
        m_(memory),
        centres_(centres),
        features_(features_of(plan)),
        sample_(sample),
        tiles_(divide_up(sample, plan.lanes)),
        rng_(plan.seed + 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(key_head)) {}

  void run() {
    const T* const rows = m_.rows;
    for (std::int64_t tile = 0; tile < tiles_; ++tile)
      plan_.centred.kernels.transpose(rows + tile * plan_.lanes * features_, features_,
                                      m_.lanes + tile * plan_.lanes * features_, plan_.lanes, plan_.lanes,
                                      features_);
    for (std::int64_t n = 0; n < sample_; ++n) {
      T sum = 0;
      for (std::int64_t c = 0; c < features_; ++c) sum += rows[n * features_ + c] * rows[n * features_ + c];
      m_.squares[n] = sum;
    }
    draw_seeds();
    for (std::int64_t iteration = 0; iteration < kIterations; ++iteration) {
      if (iteration > 0) look_for_nearest({0, centres_.count});
      move_centres();
    }
  }

 private:
  void forget_nearest() const {
    std::fill(m_.best, m_.best + tiles_ * plan_.lanes, static_cast<T>(-1e30));
    std::fill(m_.index, m_.index + tiles_ * plan_.lanes, T{0});
  }
  void take_nearest(Span rows) const;
  void look_for_nearest(Span rows) const {
    forget_nearest();
    take_nearest(rows);
  }
  void set_groups(Span rows) const;
  void draw_seeds();
  void move_centres() const;

  const Plan<E>& plan_;
  const KMeansMemory<T>& m_;
  const Centres<T>& centres_;
  std::int64_t features_, sample_, tiles_;
  Rng rng_;
};

/// `rows` begins at a multiple of kGroup.
template <class E>
void Lloyd<E>::take_nearest(Span rows) const {
  NearestTile<T> t{};
  t.c = centres_.row_groups + rows.begin * features_, t.half_square = centres_.half_square + rows.begin;
  t.first = static_cast<T>(rows.begin);
  t.features = features_, t.rows = round_up(rows.count(), kGroup);
  for (std::int64_t tile = 0; tile < tiles_; ++tile) {
    t.x = m_.lanes + tile * plan_.lanes * features_;
    t.best = m_.best + tile * plan_.lanes, t.index = m_.index + tile * plan_.lanes;
    plan_.kernels.nearest(t);
  }
}

/// Row groups and squares of whole groups of centres, of which those from centres_.count on are none.
template <class E>
void Lloyd<E>::set_groups(Span rows) const {
  const std::int64_t begin = rows.begin, end = round_up(rows.end, kGroup);
  for (std::int64_t c = begin; c < end; ++c) {
    T* const row = centres_.rows + c * features_;
    if (c >= rows.end) std::fill(row, row + features_, T{0});
    T sum = 0;
    for (std::int64_t f = 0; f < features_; ++f) sum += row[f] * row[f];
    centres_.half_square[c] = c < rows.end ? sum / 2 : static_cast<T>(1e30);
  }
  to_row_groups(plan_.centred.kernels, centres_.rows + begin * features_, end - begin, features_,
                centres_.row_groups + begin * features_);
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
      sum += begin == 0 ? 1.0 : std::max(square - 2 * static_cast<double>(m_.best[n]), 0.0);
      m_.cumulative[n] = sum;
    }
    for (std::int64_t s = 0; s < seeds; ++s) {
      const double at = sum * (static_cast<double>(s) + rng_.uniform()) / static_cast<double>(seeds);
      const auto n = std::upper_bound(m_.cumulative, m_.cumulative + sample_ - 1, at) - m_.cumulative;
      std::copy_n(m_.rows + n * features_, features_, centres_.rows + (begin + s) * features_);
    }
    set_groups({begin, begin + seeds});
    take_nearest({begin, begin + seeds});
  }
}

/// To the mean of those nearest; a centre without any stays.
template <class E>
void Lloyd<E>::move_centres() const {
  std::fill(m_.sums, m_.sums + centres_.count * features_, T{0});
  std::fill(m_.counts, m_.counts + centres_.count, std::int64_t{0});
  for (std::int64_t n = 0; n < sample_; ++n) {
    const auto c = static_cast<std::int64_t>(m_.index[n]);
    ++m_.counts[c];
    T* const sum = m_.sums + c * features_;
    for (std::int64_t f = 0; f < features_; ++f) sum[f] += m_.rows[n * features_ + f];
  }
  for (std::int64_t c = 0; c < centres_.count; ++c)
    for (std::int64_t f = 0; m_.counts[c] > 0 && f < features_; ++f)
      centres_.rows[c * features_ + f] = m_.sums[c * features_ + f] / static_cast<T>(m_.counts[c]);
  set_groups({0, centres_.count});
}

}  // namespace

template <class E>
Centres<Accumulator<E>> take_centres(const Plan<E>& plan, Arena& arena) {
  using T = Accumulator<E>;
  const std::int64_t numbers = plan.rows * features_of(plan);
  return {arena.take<T>(numbers), arena.take<T>(numbers), arena.take<T>(plan.rows), 0};
}

template <class E>
KMeansMemory<Accumulator<E>> take_kmeans_memory(const Plan<E>& plan, Arena& arena) {
  using T = Accumulator<E>;
  const std::int64_t sample = round_up(sample_size(plan, plan.problem.shape.keys), plan.lanes);
  const std::int64_t features = features_of(plan), d = plan.centred.head_size;
  KMeansMemory<T> m{};
  m.rows = arena.take<T>(sample * features), m.lanes = arena.take<T>(sample * features);
  for (T** numbers : {&m.best, &m.index, &m.squares}) *numbers = arena.take<T>(sample);
  m.sums = arena.take<T>(plan.rows * features);
  m.cumulative = arena.take<double>(std::max(sample, d * (d + 1)));
  m.counts = arena.take<std::int64_t>(plan.rows);
  return m;
}

template <class E>
void find_centres(const Plan<E>& plan, std::int64_t key_head, std::span<const std::int32_t> keys,
                  KeyMetric<Accumulator<E>>& metric, Centres<Accumulator<E>>& centres,
                  const KMeansMemory<Accumulator<E>>& m) {
  using T = Accumulator<E>;
  const auto allowed = static_cast<std::int64_t>(keys.size());
  centres.count = std::min(plan.clusters, allowed);
  if (allowed <= plan.clusters) return;
  compute_metric(plan, key_head, metric, m.cumulative);
  const std::int64_t sample = sample_size(plan, allowed), features = features_of(plan);
  const std::int64_t padded = round_up(sample, plan.lanes), d = plan.centred.head_size;
  std::fill(m.rows + sample * features, m.rows + padded * features, T{0});
  for (std::int64_t n = 0; n < sample; ++n)
    load_features(plan, key_head, metric, keys.data() + n * allowed / sample, 1, m.rows + n * features, 1);
  const double of_keys = root_mean_square(m.rows, sample, features, {0, d});
  const double of_values = root_mean_square(m.rows, sample, features, {d, features});
  metric.value_weight = of_values > 0 ? static_cast<T>(kValueWeight * of_keys / of_values) : T{0};
  for (std::int64_t n = 0; n < sample; ++n)
    for (std::int64_t c = d; c < features; ++c) m.rows[n * features + c] *= metric.value_weight;
  Lloyd<E>(plan, key_head, sample, centres, m).run();
}

template <class E>
void assign(const Plan<E>& plan, std::int64_t key_head, std::span<const std::int32_t> keys,
            const KeyMetric<Accumulator<E>>& metric, const Centres<Accumulator<E>>& centres,
            std::int32_t* cluster, Accumulator<E>* distance, Accumulator<E>* workspace) {
  using T = Accumulator<E>;
  const std::int64_t lanes = plan.lanes, features = features_of(plan);
  T *const rows = workspace, *const x = rows + lanes * features, *const best = x + lanes * features,
           *const index = best + lanes;
  const NearestTile<T> t{x,
                         centres.row_groups,
                         centres.half_square,
                         best,
                         index,
                         T{0},
                         features,
                         round_up(centres.count, kGroup)};
  const auto all = static_cast<std::int64_t>(keys.size());
  for (std::int64_t begin = 0; begin < all; begin += lanes) {
    const std::int64_t count = std::min(lanes, all - begin);
    load_features(plan, key_head, metric, keys.data() + begin, count, rows, lanes);
    plan.centred.kernels.transpose(rows, features, x, lanes, lanes, features);
    std::fill(best, best + lanes, static_cast<T>(-1e30));
    std::fill(index, index + lanes, T{0});
    plan.kernels.nearest(t);
    for (std::int64_t n = 0; n < count; ++n) {
      T square = 0;
      for (std::int64_t f = 0; f < features; ++f) square += rows[n * features + f] * rows[n * features + f];
      cluster[begin + n] = static_cast<std::int32_t>(index[n]);
      distance[begin + n] = std::max(square - 2 * best[n], T{0});
    }
  }
}

#define LOIPE_INSTANTIATE(E)                                                                            \
  template Centres<Accumulator<E>> take_centres(const Plan<E>&, Arena&);                                \
  template KMeansMemory<Accumulator<E>> take_kmeans_memory(const Plan<E>&, Arena&);                     \
  template void find_centres(const Plan<E>&, std::int64_t, std::span<const std::int32_t>,               \
                             KeyMetric<Accumulator<E>>&, Centres<Accumulator<E>>&,                      \
                             const KMeansMemory<Accumulator<E>>&);                                      \
  template void assign(const Plan<E>&, std::int64_t, std::span<const std::int32_t>,                     \
                       const KeyMetric<Accumulator<E>>&, const Centres<Accumulator<E>>&, std::int32_t*, \
                       Accumulator<E>*, Accumulator<E>*);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention::clustered
