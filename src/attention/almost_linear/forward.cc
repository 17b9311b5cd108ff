// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cmath>
#include <limits>

#include "attention/almost_linear/sweep.h"

namespace loipe::attention::almost_linear {

namespace {

/// Numerators and denominators of all queries, and what becomes of them.
template <class E>
class ForwardSweep {
 public:
  ForwardSweep(const Problem<E>& problem, const Approximation& approximation, int threads, Arena& arena)
      : sweep_(problem, approximation, approximation.degree, false, arena) {
    Arena one_thread;
    take(one_thread);
    memory_ = ThreadMemory(arena, one_thread.used(), threads);
  }

  void run(const ForwardResults<E>& results, const Parallel& parallel) {
    sweep_.prepare(parallel);
    const Shape& s = g().problem.shape;
    if (results.guarded_rows != nullptr) std::fill_n(results.guarded_rows, s.kv_heads, 0);
    sweep_.over_queries(
        parallel,
        [&](const typename Sweep<E>::Addition& keys, int thread) {
          Arena own = memory_.of(thread);
          sweep_.add_keys(keys, take(own).keys);
        },
        [&](const typename Sweep<E>::Reading& queries, int thread) {
          Arena own = memory_.of(thread);
          run_chunk(results, queries, take(own));
        });
  }

 private:
  struct Memory {
    typename Sweep<E>::KeyMemory keys;
    E* queries;
    typename PairTiles<E>::Memory pairs;
    E* numerators;   ///< [pitch][lanes]
    E* reciprocals;  ///< [lanes]
  };
  const Geometry<E>& g() const { return sweep_.geometry; }

  Memory take(Arena& arena) const {
    Memory m{};
    m.keys = sweep_.take_keys(arena);
    m.queries = sweep_.packing.take_queries(1, false, arena);
    m.pairs = sweep_.pairs.take(arena);
    m.numerators = arena.take<E>(g().panel_of(g().pitch));
    m.reciprocals = arena.take<E>(g().lanes);
    return m;
  }

  void run_chunk(const ForwardResults<E>& results, const typename Sweep<E>::Reading& r,
                 const Memory& m) const {
    const Shape& s = g().problem.shape;
    const std::int64_t key_head = r.key_head, chunk = r.chunk;
    const std::int64_t begin = chunk * g().chunk, end = std::min(begin + g().chunk, s.queries);
    const QueryPanel<E> queries = sweep_.packing.queries_at(m.queries, 0);
    if (g().is_causal()) sweep_.load_keys_of_chunk(key_head, chunk, m.keys);
    for (std::int64_t head = key_head * s.readers(); head < (key_head + 1) * s.readers(); ++head)
      for (std::int64_t first = begin; first < end; first += g().lanes) {
        sweep_.packing.load_queries(head, first, false, queries, m.keys.scratch);
        sweep_.packing.prefetch(results.o, head, first, s.queries);
        std::fill(m.numerators, m.numerators + g().panel_of(g().pitch), E{0});
        if (r.has_state)
          sweep_.features.apply_state(r.before.state, g().table.count(),
                                      {queries.x, nullptr, nullptr, nullptr}, g().pitch, true, m.numerators,
                                      m.keys.features);
        sweep_.for_each_key_panel(
            key_head, first, m.keys,
            [&](const typename PairTiles<E>::Tile& tile, const KeyPanel<E>& keys, std::int64_t) {
              sweep_.pairs.add_weighted_values(tile, queries, keys, m.numerators, m.pairs);
            });
        finish(results, head, first, m);
      }
  }

  void finish(const ForwardResults<E>& results, std::int64_t head, std::int64_t first,
              const Memory& m) const {
    const Shape& s = g().problem.shape;
    const std::int64_t key_head = s.key_head(head), count = sweep_.packing.count_at(first, s.queries);
    E* const denominators = m.numerators + g().panel_of(g().value_size);
    constexpr E kGuard = std::numeric_limits<E>::min();
    std::int64_t guarded = 0;
    std::fill(m.reciprocals, m.reciprocals + g().lanes, E{0});
    for (std::int64_t t = 0; t < count; ++t) {
      const bool has_keys = sweep_.centres.has_keys(key_head, first + t);
      E denominator = has_keys ? denominators[t] : E{0};
      if (has_keys && denominator <= kGuard) denominator = kGuard, ++guarded;
      if (has_keys) m.reciprocals[t] = 1 / denominator;
      if (results.denominator) set(results.denominator, head, first + t, 0, denominator);
      if (!results.lse) continue;
      set(results.lse, head, first + t, 0,
          has_keys ? std::log(denominator) + shift(head, first + t) : -std::numeric_limits<E>::infinity());
    }
    if (guarded > 0 && results.guarded_rows != nullptr)
      std::atomic_ref(results.guarded_rows[key_head]) += guarded;
    if (!results.o) return;
    g().kernels.adjust(m.numerators, g().value_size, nullptr, m.reciprocals);
    sweep_.packing.store(m.numerators, g().value_size, results.o, head, first, s.queries, s.value_size,
                         m.keys.scratch);
  }

  /// scale <q, centre>.
  E shift(std::int64_t head, std::int64_t i) const {
    const Problem<E>& p = g().problem;
    const E* const centre = sweep_.centres.centre(p.shape.key_head(head));
    E sum = 0;
    if (p.q.column_stride == 1) sum = g().kernels.dot(p.q.at(head, i), centre, p.shape.head_size);
    else
      for (std::int64_t c = 0; c < p.shape.head_size; ++c) sum += get(p.q, head, i, c) * centre[c];
    return static_cast<E>(p.scale) * sum;
  }

  Sweep<E> sweep_;
  ThreadMemory memory_;
};

}  // namespace

template <class E>
std::size_t forward_workspace(const Problem<E>& problem, const Approximation& approximation, int threads) {
  Arena arena;
  ForwardSweep<E>(problem, approximation, threads, arena);
  return arena.used();
}

template <class E>
void forward(const Problem<E>& problem, const Approximation& approximation, const ForwardResults<E>& results,
             const Parallel& parallel, std::span<std::byte> workspace) {
  Arena arena(workspace);
  ForwardSweep<E>(problem, approximation, parallel.threads, arena).run(results, parallel);
}

#define LOIPE_INSTANTIATE(E)                                                                                \
  template std::size_t forward_workspace(const Problem<E>&, const Approximation&, int);                     \
  template void forward(const Problem<E>&, const Approximation&, const ForwardResults<E>&, const Parallel&, \
                        std::span<std::byte>);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention::almost_linear
