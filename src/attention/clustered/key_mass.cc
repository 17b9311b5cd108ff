// SPDX-License-Identifier: Apache-2.0
#include "attention/clustered/key_mass.h"

#include <cmath>
#include <limits>

namespace loipe::attention::clustered {

namespace {

constexpr std::int64_t kMassQueries = 96;  ///< a multiple of the lanes of every instruction set

template <class E>
class Mass {
 public:
  using T = Accumulator<E>;
  Mass(const Plan<E>& plan, std::int64_t key_head, std::span<const std::int32_t> keys,
       const std::int32_t* allowed_before, const MassMemory<T>& memory)
      : plan_(plan),
        m_(memory),
        key_head_(key_head),
        keys_(keys),
        allowed_before_(allowed_before),
        d_(plan.centred.head_size),
        lanes_(plan.lanes),
        tiles_(kMassQueries / plan.lanes) {}

  void run(T* mass) {
    load_queries();
    std::fill_n(m_.maximum, kMassQueries, kNoScore<T>);
    std::fill_n(m_.sum, kMassQueries, T{0});
    for_each_piece([&](std::int64_t begin, std::int64_t count) {
      for (std::int64_t tile = 0; tile < tiles_; ++tile) add_to_softmax(tile, begin, count);
    });
    for (std::int64_t i = 0; i < kMassQueries; ++i)
      m_.lse[i] = m_.sum[i] > 0 ? m_.maximum[i] + std::log2(m_.sum[i]) : static_cast<T>(1e30);
    double all = 0;
    for_each_piece([&](std::int64_t begin, std::int64_t count) {
      std::fill_n(m_.sums, kTileRows * kGroup, T{0});
      for (std::int64_t tile = 0; tile < tiles_; ++tile) add_weights(tile, begin, count);
      for (std::int64_t n = 0; n < count; ++n) {
        mass[begin + n] = m_.sums[n * kGroup];
        all += static_cast<double>(mass[begin + n]);
      }
    });
    const auto count = static_cast<std::int64_t>(keys_.size());
    const T factor = all > 0 ? static_cast<T>(static_cast<double>(count) / all) : T{0};
    for (std::int64_t n = 0; n < count; ++n) mass[n] *= factor;
  }

 private:
  template <class Body>
  void for_each_piece(Body&& body) const {
    const auto all = static_cast<std::int64_t>(keys_.size());
    const std::int64_t features = features_of(plan_);
    for (std::int64_t begin = 0; begin < all; begin += kTileRows) {
      const std::int64_t count = std::min<std::int64_t>(kTileRows, all - begin);
      load_key_rows(plan_, key_head_, keys_.data() + begin, count, m_.rows);
      std::fill_n(m_.rows + count * features, (kTileRows - count) * features, T{0});
      for (std::int64_t row = 0; row < kTileRows; row += kGroup)
        plan_.centred.kernels.transpose(m_.rows + row * features, features, m_.k + row * d_, kGroup, kGroup,
                                        d_);
      body(begin, count);
    }
  }
  void load_queries() const;
  bool set_limits(std::int64_t tile, std::int64_t begin, std::int64_t count) const;
  void add_to_softmax(std::int64_t tile, std::int64_t begin, std::int64_t count) const;
  void add_weights(std::int64_t tile, std::int64_t begin, std::int64_t count) const;

  const Plan<E>& plan_;
  const MassMemory<T>& m_;
  std::int64_t key_head_;
  std::span<const std::int32_t> keys_;
  const std::int32_t* allowed_before_;
  std::int64_t d_, lanes_, tiles_;
};

/// One query from the middle of each of as many equal parts of those of all readers.
template <class E>
void Mass<E>::load_queries() const {
  const Shape& s = plan_.problem.shape;
  const std::int64_t all = s.readers() * s.queries, count = std::min(all, kMassQueries);
  std::fill_n(m_.seen, kMassQueries, 0);
  for (std::int64_t tile = 0; tile < tiles_; ++tile) {
    std::fill_n(m_.rows, lanes_ * d_, T{0});
    for (std::int64_t l = 0; l < lanes_ && tile * lanes_ + l < count; ++l) {
      const std::int64_t n = tile * lanes_ + l, at = (2 * n + 1) * all / (2 * count), i = at % s.queries;
      const RowRange<T> row{key_head_ * s.readers() + at / s.queries, i, 1, plan_.centred.query_factor()};
      load_rows(plan_.problem.q, row, s.head_size, m_.rows + l * d_, d_, 1);
      m_.seen[n] = allowed_before_[plan_.problem.mask.is_causal ? std::min(i + 1, s.keys) : s.keys];
    }
    plan_.centred.kernels.transpose(m_.rows, d_, m_.q + tile * lanes_ * d_, lanes_, lanes_, d_);
  }
}

/// Which keys of the piece each lane sees; false: all see all.
template <class E>
bool Mass<E>::set_limits(std::int64_t tile, std::int64_t begin, std::int64_t count) const {
  bool is_partial = false;
  for (std::int64_t l = 0; l < lanes_; ++l) {
    const std::int64_t seen = std::clamp<std::int64_t>(m_.seen[tile * lanes_ + l] - begin, 0, count);
    m_.until[l] = static_cast<T>(seen);
    is_partial = is_partial || seen < count;
  }
  std::fill_n(m_.from, lanes_, static_cast<T>(kTileRows));
  return is_partial;
}

template <class E>
void Mass<E>::add_to_softmax(std::int64_t tile, std::int64_t begin, std::int64_t count) const {
  ForwardTile<T> t{};
  t.q = m_.q + tile * lanes_ * d_, t.k = m_.k, t.scores = m_.scores;
  t.maximum = m_.maximum + tile * lanes_, t.sum = m_.sum + tile * lanes_;
  t.head_size = d_, t.value_size = 0, t.keys = count;
  t.band = {count % kGroup == 0, -kTileRows, kTileRows};
  if (set_limits(tile, begin, count)) {
    t.additive = m_.additive;
    for (std::int64_t row = 0; row < kTileRows; ++row)
      for (std::int64_t l = 0; l < lanes_; ++l)
        m_.additive[row * lanes_ + l] =
            static_cast<T>(row) < m_.until[l] ? T{0} : -std::numeric_limits<T>::infinity();
  }
  plan_.centred.kernels.forward(t);
}

template <class E>
void Mass<E>::add_weights(std::int64_t tile, std::int64_t begin, std::int64_t count) const {
  PairTile<T> t{};
  t.q = m_.q + tile * lanes_ * d_, t.k = m_.k, t.lse = m_.lse + tile * lanes_;
  t.g_rows = m_.ones, t.dv = m_.sums, t.weights = m_.scores;
  t.head_size = d_, t.value_size = kGroup;
  t.rows = round_up(count, kGroup);
  t.whole_rows = set_limits(tile, begin, count) ? 0 : count;
  t.until = m_.until, t.from = m_.from;
  plan_.kernels.backward(t);
}

}  // namespace

template <class E>
MassMemory<Accumulator<E>> take_mass_memory(const Plan<E>& plan, Arena& arena) {
  using T = Accumulator<E>;
  const std::int64_t lanes = plan.lanes, rows = std::max<std::int64_t>(kTileRows, lanes);
  MassMemory<T> m{};
  m.q = arena.take<T>(kMassQueries * plan.centred.head_size);
  for (T** numbers : {&m.maximum, &m.sum, &m.lse}) *numbers = arena.take<T>(kMassQueries);
  m.seen = arena.take<std::int32_t>(kMassQueries);
  m.rows = arena.take<T>(rows * features_of(plan)), m.k = arena.take<T>(kTileRows * plan.centred.head_size);
  for (T** tile : {&m.scores, &m.additive}) *tile = arena.take<T>(kTileRows * lanes);
  for (T** numbers : {&m.until, &m.from}) *numbers = arena.take<T>(lanes);
  m.ones = arena.take<T>(lanes * kGroup), m.sums = arena.take<T>(kTileRows * kGroup);
  return m;
}

template <class E>
void compute_mass(const Plan<E>& plan, std::int64_t key_head, std::span<const std::int32_t> keys,
                  const std::int32_t* allowed_before, Accumulator<E>* mass,
                  const MassMemory<Accumulator<E>>& memory) {
  std::fill_n(memory.ones, plan.lanes * kGroup, Accumulator<E>{1});
  Mass<E>(plan, key_head, keys, allowed_before, memory).run(mass);
}

#define LOIPE_INSTANTIATE(E)                                                              \
  template MassMemory<Accumulator<E>> take_mass_memory(const Plan<E>&, Arena&);           \
  template void compute_mass(const Plan<E>&, std::int64_t, std::span<const std::int32_t>, \
                             const std::int32_t*, Accumulator<E>*, const MassMemory<Accumulator<E>>&);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention::clustered
