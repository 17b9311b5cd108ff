// SPDX-License-Identifier: Apache-2.0
#include "attention/almost_linear/backward_sweep.h"

#include <limits>

namespace loipe::attention::almost_linear {

template <class E>
BackwardSweep<E>::BackwardSweep(const BackwardProblem<E>& backward, int threads, Arena& arena)
    : backward_(backward),
      sweep_(backward.problem, backward.approximation,
             backward.approximation.degree + (backward.approximation.gradient == Gradient::paper ? 1 : 0),
             true, arena),
      centre_share_(backward_, sweep_.geometry, sweep_.centres, arena) {
  const Shape& s = backward.problem.shape;
  reciprocals_ = arena.take<E>(s.heads * s.queries);
  of_denominators_ = arena.take<E>(s.heads * s.queries);
  Arena one_thread;
  take(one_thread);
  memory_ = ThreadMemory(arena, one_thread.used(), threads);
}

template <class E>
typename BackwardSweep<E>::Memory BackwardSweep<E>::take(Arena& arena) const {
  Memory m{};
  m.keys = sweep_.take_keys(arena);
  m.queries = sweep_.packing.take_queries(g().panels, true, arena);
  m.pairs = sweep_.pairs.take(arena);
  m.d_x = arena.take<E>(g().panel_of(g().size));
  m.d_v = arena.take<E>(g().panel_of(g().value_size));
  m.d_out = arena.take<E>(g().panel_of(g().head_size));
  m.dk = arena.take<E>(g().chunk * g().size);
  m.dv = arena.take<E>(g().chunk * g().value_size);
  return m;
}

template <class E>
void BackwardSweep<E>::run(const Parallel& parallel) {
  const Shape& s = g().problem.shape;
  const InputCotangents<E>& results = backward_.results;
  const bool has_keys = results.k || results.v, has_pairs = g().is_causal();
  sweep_.prepare(parallel);
  if (results.q || (has_keys && has_pairs))
    sweep_.over_queries(
        parallel,
        [&](const Addition& keys, int thread) {
          Arena own = memory_.of(thread);
          sweep_.add_keys(keys, take(own).keys);
        },
        [&](const Reading& queries, int thread) {
          Arena own = memory_.of(thread);
          run_queries(queries, take(own));
        });
  else
    for_each(parallel, s.heads * g().query_chunks, [&](std::int64_t task, int) {
      const std::int64_t begin = task / s.heads * g().chunk, end = std::min(begin + g().chunk, s.queries);
      for (std::int64_t first = begin; first < end; first += g().lanes) compute_rows(task % s.heads, first);
    });
  if (!has_keys) return;
  sweep_.over_keys(
      parallel,
      [&](const Addition& queries, int thread) {
        Arena own = memory_.of(thread);
        add_queries(queries, take(own));
      },
      [&](const Reading& keys, int thread) {
        Arena own = memory_.of(thread);
        run_keys(keys, take(own));
      });
  if (centre_share_.is_wanted()) centre_share_.share(parallel);
}

/// The numbers of a panel's rows.
template <class E>
void BackwardSweep<E>::compute_rows(std::int64_t head, std::int64_t first) const {
  const std::int64_t end = std::min(first + g().lanes, g().problem.shape.queries);
  for (std::int64_t i = first; i < end; ++i) compute_row(head, i);
  if (centre_share_.is_wanted()) centre_share_.add_queries(head, first, end);
}

/// o = N / den: dN = g / den, dden = (dlse - <g, o>) / den; nothing for queries without keys, and no dden
/// where the guard took the place of the denominator.
template <class E>
void BackwardSweep<E>::compute_row(std::int64_t head, std::int64_t i) const {
  const Shape& s = g().problem.shape;
  const Cotangents<E>& c = backward_.cotangents;
  E &reciprocal = reciprocals_[head * s.queries + i],
    &of_denominator = of_denominators_[head * s.queries + i];
  reciprocal = of_denominator = E{0};
  if (!sweep_.centres.has_keys(s.key_head(head), i)) return;
  const E denominator = get(backward_.saved.denominator, head, i, 0);
  reciprocal = 1 / denominator;
  if (denominator <= std::numeric_limits<E>::min()) return;
  E mean = 0;
  const Rows<const E>& o = backward_.saved.o;
  if (c.o && c.o.column_stride == 1 && o.column_stride == 1)
    mean = g().kernels.dot(c.o.at(head, i), o.at(head, i), s.value_size);
  else
    for (std::int64_t column = 0; c.o && column < s.value_size; ++column)
      mean += get(c.o, head, i, column) * get(o, head, i, column);
  of_denominator = ((c.lse ? get(c.lse, head, i, 0) : E{0}) - mean) * reciprocal;
}

template <class E>
void BackwardSweep<E>::load_queries(std::int64_t head, std::int64_t first, const QueryPanel<E>& to,
                                    const Memory& m) const {
  sweep_.packing.load_queries(head, first, true, to, m.keys.scratch);
  const std::int64_t row = head * g().problem.shape.queries + first;
  sweep_.packing.load_cotangents(backward_.cotangents.o, head, first, reciprocals_ + row,
                                 of_denominators_ + row, to, m.keys.scratch);
}

/// state (+)= sum over the chunk's queries, of all heads that read the key head, of F (dN, dden).
template <class E>
void BackwardSweep<E>::add_queries(const Addition& a, const Memory& m) const {
  const std::int64_t readers = g().problem.shape.readers();
  StateSum<E> to = a.to;
  for (std::int64_t head = a.key_head * readers; head < (a.key_head + 1) * readers; ++head) {
    for (std::int64_t panel = 0; panel < g().panels; ++panel) {
      const QueryPanel<E> queries = sweep_.packing.queries_at(m.queries, panel);
      load_queries(head, a.chunk * g().chunk + panel * g().lanes, queries, m);
      m.keys.operands[panel] = {queries.x, nullptr, queries.d_blocks,
                                queries.d + g().panel_of(g().value_size)};
    }
    sweep_.features.add_to_state(m.keys.operands, g().panels, to, m.keys.features);
    to.continues = true;
  }
}

template <class E>
void BackwardSweep<E>::prefetch_keys(std::int64_t key_head, std::int64_t first) const {
  sweep_.packing.prefetch(backward_.results.k, key_head, first, g().problem.shape.keys);
  sweep_.packing.prefetch(backward_.results.v, key_head, first, g().problem.shape.keys);
}

template <class E>
void BackwardSweep<E>::run_queries(const Reading& r, const Memory& m) const {
  const Shape& s = g().problem.shape;
  const std::int64_t key_head = r.key_head, chunk = r.chunk;
  const E* const state = r.has_state ? r.before.state : nullptr;
  const std::int64_t begin = chunk * g().chunk, end = std::min(begin + g().chunk, s.queries);
  const bool has_pairs = g().is_causal() && begin < s.keys;
  if (has_pairs) {
    sweep_.load_keys_of_chunk(key_head, chunk, m.keys);
    std::fill(m.dk, m.dk + g().chunk * g().size, E{0});
    std::fill(m.dv, m.dv + g().chunk * g().value_size, E{0});
    for (std::int64_t panel = 0; panel < g().panels; ++panel)
      prefetch_keys(key_head, begin + panel * g().lanes);
  }
  for (std::int64_t head = key_head * s.readers(); head < (key_head + 1) * s.readers(); ++head)
    for (std::int64_t first = begin; first < end; first += g().lanes) run_query_panel(head, first, state, m);
  if (has_pairs) finish_keys(key_head, chunk, false, m);
}

template <class E>
void BackwardSweep<E>::run_query_panel(std::int64_t head, std::int64_t first, const E* state,
                                       const Memory& m) const {
  const std::int64_t key_head = g().problem.shape.key_head(head);
  const QueryPanel<E> queries = sweep_.packing.queries_at(m.queries, 0);
  compute_rows(head, first);
  load_queries(head, first, queries, m);
  sweep_.packing.prefetch(backward_.results.q, head, first, g().problem.shape.queries);
  std::fill(m.d_x, m.d_x + g().panel_of(g().size), E{0});
  const bool has_q{backward_.results.q}, has_k{backward_.results.k}, has_v{backward_.results.v};
  if (state != nullptr && has_q)
    sweep_.features.differentiate(state, queries.d, {queries.x, nullptr, nullptr, nullptr}, m.d_x,
                                  m.keys.features);
  sweep_.for_each_key_panel(
      key_head, first, m.keys,
      [&](const typename PairTiles<E>::Tile& tile, const KeyPanel<E>& keys, std::int64_t panel) {
        const bool is_own = panel >= 0;
        sweep_.pairs.differentiate(
            tile, queries, keys,
            {has_q ? m.d_x : nullptr, is_own && has_k ? m.dk + panel * g().panel_of(g().size) : nullptr,
             is_own && has_v ? m.dv + panel * g().panel_of(g().value_size) : nullptr},
            m.pairs);
      });
  finish_queries(head, first, m);
}

/// dq = scale (dx + dlse centre).
template <class E>
void BackwardSweep<E>::finish_queries(std::int64_t head, std::int64_t first, const Memory& m) const {
  const Shape& s = g().problem.shape;
  const Rows<E>& to = backward_.results.q;
  if (!to) return;
  const std::int64_t key_head = s.key_head(head), count = sweep_.packing.count_at(first, s.queries);
  const Rows<const E>& of_lse = backward_.cotangents.lse;
  const E* const centre = sweep_.centres.centre(key_head);
  E* const lanes = sweep_.packing.unproject(key_head, m.d_x, m.d_out);
  for (std::int64_t t = 0; of_lse && g().approximation.is_centred && t < count; ++t) {
    const E l = sweep_.centres.has_keys(key_head, first + t) ? get(of_lse, head, first + t, 0) : E{0};
    for (std::int64_t c = 0; c < s.head_size; ++c) lanes[c * g().lanes + t] += l * centre[c];
  }
  sweep_.packing.scale(lanes);
  sweep_.packing.store(lanes, g().head_size, to, head, first, s.queries, s.head_size, m.keys.scratch);
}

/// F_k R gives dV, V R^T the features' share of dK; near queries what the window corrects.
template <class E>
void BackwardSweep<E>::run_keys(const Reading& r, const Memory& m) const {
  const std::int64_t key_head = r.key_head, chunk = r.chunk;
  const bool has_k{backward_.results.k}, has_v{backward_.results.v};
  const std::int64_t size = g().panel_of(g().size), value_size = g().panel_of(g().value_size);
  sweep_.load_keys_of_chunk(key_head, chunk, m.keys);
  for (std::int64_t panel = 0; panel < g().panels; ++panel) {
    const KeyPanel<E> keys = sweep_.packing.keys_at(m.keys.panels, panel);
    prefetch_keys(key_head, chunk * g().chunk + panel * g().lanes);
    const typename FeatureMaps<E>::Operand operand{keys.x, keys.admitted(g().value_size, g().lanes), nullptr,
                                                   nullptr};
    std::fill(m.d_x, m.d_x + size, E{0});
    std::fill(m.d_v, m.d_v + value_size, E{0});
    if (r.has_state && has_k)
      sweep_.features.differentiate(r.before.state, keys.v, operand, m.d_x, m.keys.features);
    if (r.has_state && has_v)
      sweep_.features.apply_state(r.before.values, sweep_.states.value_features(), operand, g().value_size,
                                  false, m.d_v, m.keys.features);
    g().kernels.transpose(m.d_x, g().lanes, m.dk + panel * size, g().size, g().size, g().lanes);
    g().kernels.transpose(m.d_v, g().lanes, m.dv + panel * value_size, g().value_size, g().value_size,
                          g().lanes);
  }
  if (g().approximation.window > 0) add_near_queries(key_head, chunk, m);
  finish_keys(key_head, chunk, g().is_causal() && chunk < g().query_chunks, m);
  if (centre_share_.is_wanted()) centre_share_.sum_keys(key_head, chunk);
}

/// Pairs of the chunk's keys with near queries, those of their own chunk excepted when causal.
template <class E>
void BackwardSweep<E>::add_near_queries(std::int64_t key_head, std::int64_t chunk, const Memory& m) const {
  const Shape& s = g().problem.shape;
  const bool has_k{backward_.results.k}, has_v{backward_.results.v};
  const QueryPanel<E> queries = sweep_.packing.queries_at(m.queries, 0);
  const std::int64_t lanes = g().lanes, begin = chunk * g().chunk;
  const std::int64_t reach = std::min(g().approximation.window, s.queries + s.keys) - 1;
  const std::int64_t low =
      g().is_causal() ? begin + g().chunk : std::max<std::int64_t>(begin - reach, 0) / lanes * lanes;
  const std::int64_t high = std::min(std::min(begin + g().chunk, s.keys) + reach, s.queries);
  for (std::int64_t head = key_head * s.readers(); head < (key_head + 1) * s.readers(); ++head)
    for (std::int64_t first = low; first < high; first += lanes) {
      load_queries(head, first, queries, m);
      for (std::int64_t panel = 0; panel < g().panels; ++panel) {
        const std::int64_t distance = first - begin - panel * lanes;
        if (distance - lanes >= reach || distance + lanes <= -reach) continue;
        sweep_.pairs.differentiate({key_head, distance, true}, queries,
                                   sweep_.packing.keys_at(m.keys.panels, panel),
                                   {nullptr, has_k ? m.dk + panel * g().panel_of(g().size) : nullptr,
                                    has_v ? m.dv + panel * g().panel_of(g().value_size) : nullptr},
                                   m.pairs);
      }
    }
}

/// Writes dK and dV of a chunk or, if it continues, adds to them.
template <class E>
void BackwardSweep<E>::finish_keys(std::int64_t key_head, std::int64_t chunk, bool continues,
                                   const Memory& m) const {
  const Shape& s = g().problem.shape;
  for (std::int64_t panel = 0; panel < g().panels; ++panel) {
    const std::int64_t first = chunk * g().chunk + panel * g().lanes;
    if (backward_.results.v)
      add_rows(backward_.results.v, key_head, first, m.dv + panel * g().panel_of(g().value_size),
               s.value_size, g().value_size, continues);
    if (!backward_.results.k) continue;
    const E* rows = m.dk + panel * g().panel_of(g().size);
    if (g().is_projected()) {
      g().kernels.transpose(rows, g().size, m.d_x, g().lanes, g().lanes, g().size);
      const E* const lanes = sweep_.packing.unproject(key_head, m.d_x, m.d_out);
      g().kernels.transpose(lanes, g().lanes, m.keys.scratch, g().head_size, g().head_size, g().lanes);
      rows = m.keys.scratch;
    }
    add_rows(backward_.results.k, key_head, first, rows, s.head_size, g().head_size, continues);
  }
}

template <class E>
void BackwardSweep<E>::add_rows(const Rows<E>& to, std::int64_t key_head, std::int64_t first, const E* rows,
                                std::int64_t columns, std::int64_t width, bool continues) const {
  const Problem<E>& p = g().problem;
  const std::uint8_t* const is_admitted = key_mask_at(p.mask, key_head, 0);
  const std::int64_t count = sweep_.packing.count_at(first, p.shape.keys);
  if (is_admitted == nullptr && to.column_stride == 1 && columns % 4 == 0)
    return g().kernels.write_rows(rows, width, to.at(key_head, first), to.row_stride, count, columns,
                                  continues);
  for (std::int64_t t = 0; t < count; ++t, rows += width) {
    const bool is_masked = is_admitted != nullptr && is_admitted[first + t] == 0;
    E* const row = to.at(key_head, first + t);
    for (std::int64_t c = 0; c < columns; ++c) {
      E& at = row[c * to.column_stride];
      if (is_masked) at = E{0};
      else at = continues ? at + rows[c] : rows[c];
    }
  }
}

template class BackwardSweep<float>;
template class BackwardSweep<double>;

}  // namespace loipe::attention::almost_linear
