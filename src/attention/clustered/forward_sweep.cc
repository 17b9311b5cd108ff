// SPDX-License-Identifier: Apache-2.0
#include "attention/clustered/forward_sweep.h"

#include <cmath>
#include <limits>

#include "attention/clustered/gathering.h"

namespace loipe::attention::clustered {

namespace {

Budget without_samples(Budget budget) {
  budget.sampled = 0;
  return budget;
}

}  // namespace

template <class E>
ForwardSweep<E>::ForwardSweep(const Problem<E>& problem, const Budget& budget, int threads, Arena& arena)
    : problem_(problem),
      plan_(problem, without_samples(budget), arena),
      packing_(plan_),
      heads_at_once_([&] {
        Arena head;
        take_head(head);
        return plan_.heads_at_once(head.used() + KeyClustering<E>::bytes_of_head(plan_));
      }()),
      clustering_(plan_, heads_at_once_, threads, arena),
      heads_(arena.take<Head>(heads_at_once_)) {
  for (std::int64_t h = 0; h < heads_at_once_; ++h) {
    const Head head = take_head(arena);
    if (heads_ != nullptr) std::construct_at(heads_ + h, head);
  }
  Arena memory;
  take_memory(memory);
  memory_ = ThreadMemory(arena, memory.used(), threads);
}

template <class E>
typename ForwardSweep<E>::Head ForwardSweep<E>::take_head(Arena& arena) const {
  const std::int64_t parts = (1 + plan_.groups) * packing_.slots();
  Head h{};
  h.queries = packing_.take(false, arena);
  h.maximum = arena.take<T>(parts), h.sum = arena.take<T>(parts);
  h.o = arena.take<T>(parts * plan_.centred.value_size);
  return h;
}

template <class E>
typename ForwardSweep<E>::Memory ForwardSweep<E>::take_memory(Arena& arena) const {
  const std::int64_t lanes = plan_.lanes, dv = plan_.centred.value_size;
  Memory m{};
  m.lanes = take_lanes(plan_, arena);
  m.means = take_means(plan_, arena);
  m.strip = take_strip(plan_, kStripRows, arena);
  for (T** tile : {&m.scores, &m.additive}) *tile = arena.take<T>(kTileRows * lanes);
  for (T** numbers : {&m.maximum, &m.sum}) *numbers = arena.take<T>(lanes);
  for (T** rows : {&m.o, &m.o_rows}) *rows = arena.take<T>(lanes * dv);
  return m;
}

template <class E>
void ForwardSweep<E>::run(const ForwardResults<E>& results, const Parallel& parallel) {
  results_ = results;
  plan_.centred.compute_means(parallel);
  for (std::int64_t first = 0; first < problem_.shape.kv_heads; first += heads_at_once_) {
    const std::int64_t heads = std::min(heads_at_once_, problem_.shape.kv_heads - first);
    clustering_.run(parallel, first, heads);
    const std::int64_t at_once = packing_.blocks_at_once();
    for (std::int64_t block = 0; block < plan_.blocks; block += at_once)
      run_chunk({first, block, std::min(at_once, plan_.blocks - block)}, heads, parallel);
  }
}

template <class E>
void ForwardSweep<E>::run_chunk(const ChunkRange& range, std::int64_t heads, const Parallel& parallel) {
  const auto of = [&](std::int64_t h) { return ChunkRange{range.key_head + h, range.first, range.count}; };
  for_each(parallel, heads * range.count, [&](std::int64_t task, int thread) {
    const std::int64_t h = task / range.count;
    take_block(of(h), range.first + task % range.count, h, memory_of(thread));
  });
  for_each(parallel, heads * plan_.groups, [&](std::int64_t task, int thread) {
    Memory m = memory_of(thread);
    take_group(of(task / plan_.groups), task % plan_.groups, task / plan_.groups, m);
  });
  const std::int64_t readers = problem_.shape.readers();
  for_each(parallel, heads * range.count * readers, [&](std::int64_t task, int) {
    const std::int64_t h = task / (range.count * readers), rest = task % (range.count * readers);
    write(packing_.block_of(of(h), range.first + rest / readers, rest % readers), h);
  });
}

template <class E>
void ForwardSweep<E>::clear(std::int64_t position, std::int64_t part, Span slots) const {
  const Head& head = heads_[position];
  const std::int64_t first = part * packing_.slots() + slots.begin, dv = plan_.centred.value_size;
  std::fill_n(head.maximum + first, slots.count(), kNoScore<T>);
  std::fill_n(head.sum + first, slots.count(), T{0});
  std::fill_n(head.o + first * dv, slots.count() * dv, T{0});
}

template <class E>
void ForwardSweep<E>::take_block(const ChunkRange& range, std::int64_t block, std::int64_t position,
                                 const Memory& memory) const {
  Memory m = memory;
  pack_means(plan_, clustering_.of(position), plan_.set_of(block), m.means);
  for (std::int64_t reader = 0; reader < problem_.shape.readers(); ++reader) {
    const BlockOfReader b = packing_.block_of(range, block, reader);
    packing_.pack_queries(b, heads_[position].queries);
    clear(position, 0, {b.slot, b.slot + plan_.block});
    take_means_of(b, position, m);
  }
  if (plan_.has_direct()) take_direct(range, block, position, m);
}

template <class E>
void ForwardSweep<E>::take_means_of(const BlockOfReader& b, std::int64_t position, Memory& m) const {
  const QueryChunk<T>& queries = heads_[position].queries;
  for (std::int64_t lane = 0; lane < b.queries.count(); lane += plan_.lanes) {
    const std::int64_t used = std::min(plan_.lanes, b.queries.count() - lane);
    for (std::int64_t l = 0; l < used; ++l) add_lane(m.lanes, b.slot + lane + l, whole_strip(plan_.rows));
    gather(plan_, m.lanes, queries.q, plan_.centred.head_size, m.lanes.q_rows, m.lanes.q);
    select(plan_, m.lanes, plan_.exact_keys, static_cast<const T*>(nullptr), m.means,
           queries.taken + (b.slot + lane) / plan_.lanes * plan_.rows);
    take_rows({&m.means.strip, plan_.rows, m.means.additive}, 0, position, m);
  }
}

template <class E>
void ForwardSweep<E>::take_direct(const ChunkRange& range, std::int64_t block, std::int64_t position,
                                  Memory& m) const {
  const KeyClusters<T>& keys = clustering_.of(position);
  for_each_direct_strip(plan_, keys, block, m.strip, [&](std::int64_t begin, std::int64_t count) {
    for (std::int64_t reader = 0; reader < problem_.shape.readers(); ++reader)
      for_each_direct_tile(plan_, keys, packing_.block_of(range, block, reader),
                           heads_[position].queries.query, {begin, begin + count}, m.lanes,
                           [&] { take_rows({&m.strip, count, nullptr}, 0, position, m); });
  });
}

template <class E>
void ForwardSweep<E>::take_group(const ChunkRange& range, std::int64_t group, std::int64_t position,
                                 Memory& m) const {
  const KeyClusters<T>& keys = clustering_.of(position);
  clear(position, 1 + group, {0, packing_.slots()});
  for_each_member_strip(plan_, keys, group, m.strip, [&](std::int64_t cluster, Span members) {
    for_each_member_tile(plan_, keys, range, heads_[position].queries.taken, cluster, members, m.lanes,
                         [&] { take_rows({&m.strip, members.count(), nullptr}, 1 + group, position, m); });
  });
}

template <class E>
void ForwardSweep<E>::take_rows(const TileRows& rows, std::int64_t part, std::int64_t position,
                                Memory& m) const {
  const Head& head = heads_[position];
  const std::int64_t d = plan_.centred.head_size, dv = plan_.centred.value_size, lanes = plan_.lanes;
  const std::int64_t first = part * packing_.slots();
  close_lanes(m.lanes, lanes);
  gather(plan_, m.lanes, head.queries.q, d, m.lanes.q_rows, m.lanes.q);
  gather(plan_, m.lanes, head.o + first * dv, dv, m.o_rows, m.o);
  for (std::int64_t l = 0; l < lanes; ++l) {
    const bool is_used = l < m.lanes.count;
    m.maximum[l] = is_used ? head.maximum[first + m.lanes.slots[l]] : kNoScore<T>;
    m.sum[l] = is_used ? head.sum[first + m.lanes.slots[l]] : T{0};
  }
  ForwardTile<T> t{};
  t.q = m.lanes.q, t.scores = m.scores, t.maximum = m.maximum, t.sum = m.sum, t.o = m.o;
  t.head_size = d, t.value_size = dv;
  constexpr std::int32_t kFar = 1 << 28;
  const std::int64_t seen = rows_seen(m.lanes, rows.count);
  for (std::int64_t begin = 0; begin < seen; begin += kTileRows) {
    t.keys = std::min<std::int64_t>(kTileRows, seen - begin);
    t.band = {t.keys % kGroup == 0, -kFar, kFar};
    t.k = rows.strip->k + begin * d, t.v = rows.strip->vc + begin * dv;
    const std::int64_t whole = set_piece(m.lanes, lanes, begin, t.keys);
    t.additive = nullptr;
    if (rows.additive != nullptr) {
      t.additive = rows.additive + begin * lanes;
    } else if (whole < t.keys) {
      fill_additive(whole, round_up(t.keys, kGroup), m);
      t.additive = m.additive;
    }
    plan_.centred.kernels.forward(t);
  }
  plan_.centred.kernels.transpose(m.o, lanes, m.o_rows, dv, dv, lanes);
  for (std::int64_t l = 0; l < m.lanes.count; ++l) {
    const std::int64_t slot = first + m.lanes.slots[l];
    head.maximum[slot] = m.maximum[l], head.sum[slot] = m.sum[l];
    std::copy_n(m.o_rows + l * dv, dv, head.o + slot * dv);
  }
  m.lanes.count = 0;
}

/// -inf for the rows that a lane does not see.
template <class E>
void ForwardSweep<E>::fill_additive(std::int64_t whole_rows, std::int64_t rows, const Memory& m) const {
  std::fill_n(m.additive, whole_rows * plan_.lanes, T{0});
  for (std::int64_t row = whole_rows; row < rows; ++row)
    for (std::int64_t l = 0; l < plan_.lanes; ++l) {
      const T at = static_cast<T>(row);
      const bool is_seen = at < m.lanes.piece_until[l] || at >= m.lanes.piece_from[l];
      m.additive[row * plan_.lanes + l] = is_seen ? T{0} : -std::numeric_limits<T>::infinity();
    }
}

/// Joins the running softmaxes of each query.
template <class E>
void ForwardSweep<E>::write(const BlockOfReader& b, std::int64_t position) const {
  const Head& head = heads_[position];
  const std::int64_t slots = packing_.slots(), dv = plan_.centred.value_size;
  const T* const mean = plan_.centred.v_mean_of(problem_.shape.key_head(b.head));
  for (std::int64_t row = 0; row < b.queries.count(); ++row) {
    const std::int64_t i = b.queries.begin + row;
    T maximum = kNoScore<T>, sum = 0, factors[1 + Plan<E>::kLargestGroups];
    for (std::int64_t p = 0; p <= plan_.groups; ++p)
      maximum = std::max(maximum, head.maximum[p * slots + b.slot + row]);
    for (std::int64_t p = 0; p <= plan_.groups; ++p) {
      factors[p] = std::exp2(head.maximum[p * slots + b.slot + row] - maximum);
      sum += factors[p] * head.sum[p * slots + b.slot + row];
    }
    for (std::int64_t c = 0; results_.o && c < problem_.shape.value_size; ++c) {
      T o = 0;
      for (std::int64_t p = 0; p <= plan_.groups; ++p)
        o += factors[p] * head.o[(p * slots + b.slot + row) * dv + c];
      set(results_.o, b.head, i, c, sum > 0 ? o / sum + mean[c] : T{0});
    }
    if (results_.lse) {
      const double lse = (static_cast<double>(maximum) + std::log2(static_cast<double>(sum))) * kLn2 +
                         plan_.centred.centred_logit(problem_.q, b.head, i);
      set(results_.lse, b.head, i, 0, sum > 0 ? static_cast<T>(lse) : -std::numeric_limits<T>::infinity());
    }
    if (results_.statistics) {
      set(results_.statistics, b.head, i, 0, maximum);
      set(results_.statistics, b.head, i, 1, sum);
    }
  }
}

template class ForwardSweep<float>;
template class ForwardSweep<double>;

}  // namespace loipe::attention::clustered
