// SPDX-License-Identifier: Apache-2.0
#include "attention/clustered/vjp_sweep.h"

#include <algorithm>
#include <cmath>

#include "attention/clustered/gathering.h"

namespace loipe::attention::clustered {

template <class E>
VjpSweep<E>::VjpSweep(const Problem<E>& problem, const Budget& budget, int threads, Arena& arena)
    : problem_(problem),
      plan_(problem, budget, arena),
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
  Arena memory, sampling;
  take_memory(memory), take_importance_memory(plan_, sampling);
  memory_ = ThreadMemory(arena, std::max(memory.used(), sampling.used()), threads);
}

template <class E>
typename VjpSweep<E>::Head VjpSweep<E>::take_head(Arena& arena) const {
  const std::int64_t d = plan_.centred.head_size, dv = plan_.centred.value_size;
  const std::int64_t means = plan_.blocks * plan_.rows, direct = plan_.blocks * plan_.direct_keys();
  Head h{};
  h.queries = packing_.take(true, arena);
  h.dq = arena.take<T>((1 + plan_.groups) * packing_.slots() * d);
  h.mass = arena.take<T>((1 + plan_.groups) * packing_.slots());
  h.mean_dk = arena.take<T>(means * d), h.mean_dv = arena.take<T>(means * dv);
  h.direct_dk = arena.take<T>(direct * d), h.direct_dv = arena.take<T>(direct * dv);
  h.member_dk = arena.take<T>(problem_.shape.keys * d), h.member_dv = arena.take<T>(problem_.shape.keys * dv);
  h.level = arena.take<T>(1);
  return h;
}

template <class E>
typename VjpSweep<E>::Memory VjpSweep<E>::take_memory(Arena& arena) const {
  const std::int64_t d = plan_.centred.head_size, dv = plan_.centred.value_size;
  Memory m{};
  m.lanes = take_lanes(plan_, arena);
  m.means = take_means(plan_, arena);
  m.strip = take_strip(plan_, kStripRows, arena);
  for (T** tile : {&m.weights, &m.dx}) *tile = arena.take<T>(kTileRows * plan_.lanes);
  for (T** rows : {&m.dq, &m.dq_rows}) *rows = arena.take<T>(plan_.lanes * d);
  for (T** lanes : {&m.mass, &m.thresholds}) *lanes = arena.take<T>(plan_.lanes);
  m.dk = arena.take<T>(kStripRows * d), m.dv = arena.take<T>(kStripRows * dv);
  m.front_k = arena.take<T>((plan_.blocks + 1) * d), m.front_v = arena.take<T>((plan_.blocks + 1) * dv);
  return m;
}

template <class E>
void VjpSweep<E>::run(const Saved<E>& saved, const Cotangents<E>& cotangents,
                      const InputCotangents<E>& results, const Parallel& parallel) {
  saved_ = saved, cotangents_ = cotangents, results_ = results;
  plan_.centred.compute_means(parallel);
  for (std::int64_t first = 0; first < problem_.shape.kv_heads; first += heads_at_once_) {
    const std::int64_t heads = std::min(heads_at_once_, problem_.shape.kv_heads - first);
    clustering_.run(parallel, first, heads);
    if (plan_.is_by_importance)
      for_each(parallel, heads,
               [&](std::int64_t h, int thread) { find_level(first + h, h, memory_.of(thread)); });
    for (std::int64_t h = 0; h < heads; ++h) {
      std::fill_n(heads_[h].member_dk, problem_.shape.keys * plan_.centred.head_size, T{0});
      std::fill_n(heads_[h].member_dv, problem_.shape.keys * plan_.centred.value_size, T{0});
    }
    const std::int64_t at_once = packing_.blocks_at_once();
    for (std::int64_t block = 0; block < plan_.blocks; block += at_once)
      run_chunk({first, block, std::min(at_once, plan_.blocks - block)}, heads, parallel);
    for_each(parallel, heads * plan_.clusters, [&](std::int64_t task, int thread) {
      const std::int64_t h = task / plan_.clusters;
      hand_to_members(first + h, task % plan_.clusters, h, memory_of(thread));
    });
    for_each(parallel, heads, [&](std::int64_t h, int) { write_excluded(first + h); });
  }
}

template <class E>
void VjpSweep<E>::run_chunk(const ChunkRange& range, std::int64_t heads, const Parallel& parallel) {
  const auto of = [&](std::int64_t h) { return ChunkRange{range.key_head + h, range.first, range.count}; };
  for_each(parallel, heads * range.count, [&](std::int64_t task, int thread) {
    const std::int64_t h = task / range.count;
    take_block(of(h), range.first + task % range.count, h, memory_of(thread));
  });
  for_each(parallel, heads * plan_.groups, [&](std::int64_t task, int thread) {
    Memory m = memory_of(thread);
    take_group(of(task / plan_.groups), task % plan_.groups, task / plan_.groups, m);
  });
  for_each(parallel, heads * range.count, [&](std::int64_t task, int thread) {
    const std::int64_t h = task / range.count;
    take_means_of(of(h), range.first + task % range.count, h, memory_of(thread));
  });
  const std::int64_t readers = problem_.shape.readers();
  for_each(parallel, heads * range.count * readers, [&](std::int64_t task, int) {
    const std::int64_t h = task / (range.count * readers), rest = task % (range.count * readers);
    if (results_.q) write_dq(packing_.block_of(of(h), range.first + rest / readers, rest % readers), h);
  });
}

template <class E>
void VjpSweep<E>::find_level(std::int64_t key_head, std::int64_t position, Arena memory) const {
  find_levels(plan_, clustering_.of(position), key_head, saved_, cotangents_, std::span(&plan_.exact_keys, 1),
              heads_[position].level, take_importance_memory(plan_, memory));
}

/// Packs the queries of a block, chooses their clusters, and takes the direct keys.
template <class E>
void VjpSweep<E>::take_block(const ChunkRange& range, std::int64_t block, std::int64_t position,
                             const Memory& memory) const {
  const Head& head = heads_[position];
  const std::int64_t d = plan_.centred.head_size;
  Memory m = memory;
  pack_means(plan_, clustering_.of(position), plan_.set_of(block), m.means);
  for (std::int64_t reader = 0; reader < problem_.shape.readers(); ++reader) {
    const BlockOfReader b = packing_.block_of(range, block, reader);
    packing_.pack_queries(b, head.queries);
    packing_.pack_cotangents(b, saved_, cotangents_, clustering_.of(position).value_variance, head.queries);
    sample_queries(plan_, b, head.queries);
    std::fill_n(head.dq + b.slot * d, plan_.slots * d, T{0});
    std::fill_n(head.mass + b.slot, plan_.slots, T{0});
    for_each_choice(b, position, m, [] {});
  }
  if (plan_.has_direct()) take_direct(range, block, position, m);
}

/// For the queries in the lanes, which are those of the block from `lane` on.
template <class E>
void VjpSweep<E>::choose(const BlockOfReader& b, std::int64_t lane, std::int64_t position,
                         const Memory& m) const {
  const QueryChunk<T>& queries = heads_[position].queries;
  const std::int64_t first = b.slot + lane;
  for (std::int64_t l = 0; plan_.is_by_importance && l < plan_.lanes; ++l)
    m.thresholds[l] =
        threshold_of(*heads_[position].level, queries.lse[first + l], queries.log_size[first + l]);
  select(plan_, m.lanes, plan_.exact_keys, plan_.is_by_importance ? m.thresholds : nullptr, m.means,
         queries.taken + first / plan_.lanes * plan_.rows);
}

template <class E>
template <class Body>
void VjpSweep<E>::for_each_choice(const BlockOfReader& b, std::int64_t position, Memory& m,
                                  Body&& body) const {
  for (std::int64_t lane = 0; lane < b.queries.count(); lane += plan_.lanes) {
    const std::int64_t used = std::min(plan_.lanes, b.queries.count() - lane);
    for (std::int64_t l = 0; l < used; ++l) add_lane(m.lanes, b.slot + lane + l, whole_strip(plan_.rows));
    fill_lanes(position, m);
    choose(b, lane, position, m);
    body();
    m.lanes.count = 0;
  }
}

template <class E>
void VjpSweep<E>::take_means_of(const ChunkRange& range, std::int64_t block, std::int64_t position,
                                const Memory& memory) const {
  const Head& head = heads_[position];
  const std::int64_t d = plan_.centred.head_size, dv = plan_.centred.value_size, at = block * plan_.rows;
  Memory m = memory;
  pack_means(plan_, clustering_.of(position), plan_.set_of(block), m.means);
  std::fill_n(head.mean_dk + at * d, plan_.rows * d, T{0});
  std::fill_n(head.mean_dv + at * dv, plan_.rows * dv, T{0});
  for (std::int64_t reader = 0; reader < problem_.shape.readers(); ++reader)
    for_each_choice(packing_.block_of(range, block, reader), position, m, [&] {
      const TileRows rows{&m.means.strip, plan_.rows, m.means.additive, head.mean_dk + at * d,
                          head.mean_dv + at * dv};
      take_rows(rows, Wanted::mass, m);
      fill_up_means(position, m);
      take_rows(rows, Wanted::derivatives, m);
      add_dq(head.dq, m);
    });
}

/// Scales the weights of the means of each lane, by way of its lse, so that with those of direct and taken
/// keys they sum up to 1 as the exact weights do: exp of a mean logit is below the mean of exp, so means
/// alone weigh too little. At most kLargestFactorOfMeans times, lest rounding of a small rest be blown up.
template <class E>
void VjpSweep<E>::fill_up_means(std::int64_t position, const Memory& m) const {
  const Head& head = heads_[position];
  for (std::int64_t l = 0; l < m.lanes.count; ++l) {
    const T of_means = m.mass[l];
    if (!(of_means > 0)) continue;
    T rest = 1;
    for (std::int64_t g = 0; g <= plan_.groups; ++g)
      rest -= head.mass[g * packing_.slots() + m.lanes.slots[l]];
    const T factor = std::clamp(rest / of_means, T{0}, static_cast<T>(kLargestFactorOfMeans));
    m.lanes.lse[l] = factor > 0 ? m.lanes.lse[l] - std::log2(factor) : static_cast<T>(2 * kNoKeys);
  }
}

template <class E>
void VjpSweep<E>::take_direct(const ChunkRange& range, std::int64_t block, std::int64_t position,
                              Memory& m) const {
  const Head& head = heads_[position];
  const KeyClusters<T>& keys = clustering_.of(position);
  const std::int64_t d = plan_.centred.head_size, dv = plan_.centred.value_size;
  for_each_direct_strip(plan_, keys, block, m.strip, [&](std::int64_t begin, std::int64_t count) {
    clear_sums(m);
    for (std::int64_t reader = 0; reader < problem_.shape.readers(); ++reader)
      for_each_direct_tile(
          plan_, keys, packing_.block_of(range, block, reader), head.queries.query, {begin, begin + count},
          m.lanes,
          [&] { take_gathered({&m.strip, count, nullptr, m.dk, m.dv}, head.dq, head.mass, position, m); });
    const std::int64_t row = block * plan_.direct_keys() + begin;
    std::copy_n(m.dk, count * d, head.direct_dk + row * d);
    std::copy_n(m.dv, count * dv, head.direct_dv + row * dv);
  });
}

template <class E>
void VjpSweep<E>::take_group(const ChunkRange& range, std::int64_t group, std::int64_t position,
                             Memory& m) const {
  const Head& head = heads_[position];
  const KeyClusters<T>& keys = clustering_.of(position);
  const std::int64_t d = plan_.centred.head_size, dv = plan_.centred.value_size;
  T* const dq = head.dq + (1 + group) * packing_.slots() * d;
  T* const mass = head.mass + (1 + group) * packing_.slots();
  std::fill_n(dq, packing_.slots() * d, T{0});
  std::fill_n(mass, packing_.slots(), T{0});
  for_each_member_strip(plan_, keys, group, m.strip, [&](std::int64_t cluster, Span members) {
    const std::int64_t count = members.count();
    clear_sums(m);
    for_each_member_tile(plan_, keys, range, head.queries.taken, cluster, members, m.lanes, [&] {
      take_gathered({&m.strip, count, nullptr, m.dk, m.dv}, dq, mass, position, m);
    });
    for (std::int64_t i = 0; i < count * d; ++i) head.member_dk[members.begin * d + i] += m.dk[i];
    for (std::int64_t i = 0; i < count * dv; ++i) head.member_dv[members.begin * dv + i] += m.dv[i];
  });
}

template <class E>
void VjpSweep<E>::clear_sums(const Memory& m) const {
  std::fill_n(m.dk, kStripRows * plan_.centred.head_size, T{0});
  std::fill_n(m.dv, kStripRows * plan_.centred.value_size, T{0});
}

template <class E>
void VjpSweep<E>::take_gathered(const TileRows& rows, T* dq, T* mass, std::int64_t position,
                                Memory& m) const {
  fill_lanes(position, m);
  take_rows(rows, Wanted::derivatives, m);
  for (std::int64_t l = 0; l < m.lanes.count; ++l) mass[m.lanes.slots[l]] += m.mass[l];
  add_dq(dq, m);
}

template <class E>
void VjpSweep<E>::fill_lanes(std::int64_t position, const Memory& m) const {
  const QueryChunk<T>& queries = heads_[position].queries;
  close_lanes(m.lanes, plan_.lanes);
  gather(plan_, m.lanes, queries.q, plan_.centred.head_size, m.lanes.q_rows, m.lanes.q);
  gather(plan_, m.lanes, queries.g, plan_.centred.value_size, m.lanes.g_rows, m.lanes.g);
  for (std::int64_t l = 0; l < plan_.lanes; ++l) {
    const bool is_used = l < m.lanes.count;
    m.lanes.lse[l] = is_used ? queries.lse[m.lanes.slots[l]] : T{0};
    m.lanes.mean[l] = is_used ? queries.mean[m.lanes.slots[l]] : T{0};
  }
}

/// m.mass becomes that of the lanes, and m.dq [head_size][lanes].
template <class E>
void VjpSweep<E>::take_rows(const TileRows& rows, Wanted wanted, const Memory& m) const {
  const std::int64_t d = plan_.centred.head_size, dv = plan_.centred.value_size;
  const bool has_derivatives = wanted == Wanted::derivatives;
  std::fill_n(m.mass, plan_.lanes, T{0});
  std::fill_n(m.dq, plan_.lanes * d, T{0});
  PairTile<T> t{};
  t.q = m.lanes.q, t.g = m.lanes.g, t.q_rows = m.lanes.q_rows, t.g_rows = m.lanes.g_rows;
  t.lse = m.lanes.lse, t.mean = m.lanes.mean;
  t.until = m.lanes.piece_until, t.from = m.lanes.piece_from;
  t.weights = m.weights, t.mass = m.mass, t.dq = m.dq;
  t.dx = has_derivatives ? m.dx : nullptr;
  t.head_size = d, t.value_size = dv;
  const std::int64_t seen = rows_seen(m.lanes, rows.count);
  for (std::int64_t begin = 0; begin < seen; begin += kTileRows) {
    const std::int64_t count = std::min<std::int64_t>(kTileRows, seen - begin);
    t.k = rows.strip->k + begin * d, t.v = rows.strip->v + begin * dv, t.kc = rows.strip->kc + begin * d;
    t.additive = rows.additive == nullptr ? nullptr : rows.additive + begin * plan_.lanes;
    if (has_derivatives) t.dk = rows.dk + begin * d, t.dv = rows.dv + begin * dv;
    t.rows = round_up(count, kGroup), t.real_rows = count;
    t.whole_rows = set_piece(m.lanes, plan_.lanes, begin, count);
    plan_.kernels.backward(t);
  }
}

template <class E>
void VjpSweep<E>::add_dq(T* dq, Memory& m) const {
  const std::int64_t d = plan_.centred.head_size;
  plan_.kernels.scatter({m.dq, m.lanes.slots, dq, m.dq_rows, d, m.lanes.count});
  m.lanes.count = 0;
}

/// Sampled queries last, in place of what they have as others.
template <class E>
void VjpSweep<E>::write_dq(const BlockOfReader& b, std::int64_t position) const {
  const QueryChunk<T>& queries = heads_[position].queries;
  for (std::int64_t row = 0; row < plan_.slots; ++row) {
    const std::int64_t slot = b.slot + row;
    if (queries.query[slot] >= 0)
      write_row(b, slot, row < plan_.block ? 1 : 1 / queries.factor[slot], position);
  }
}

/// The rows of exact dX sum to dL/dlse, so that centring the keys takes that much of their mean away.
template <class E>
void VjpSweep<E>::write_row(const BlockOfReader& b, std::int64_t slot, T factor,
                            std::int64_t position) const {
  const Head& head = heads_[position];
  const std::int64_t d = plan_.centred.head_size, slots = packing_.slots(), i = head.queries.query[slot];
  const T* const mean = plan_.centred.k_mean_of(problem_.shape.key_head(b.head));
  const T scale = static_cast<T>(problem_.scale);
  const bool has_keys = head.queries.lse[slot] < static_cast<T>(kNoKeys);
  const T of_mean = has_keys ? static_cast<T>(lse_cotangent(cotangents_, b.head, i)) : T{0};
  T* const sum = head.dq + slot * d;
  for (std::int64_t g = 1; g <= plan_.groups; ++g) {
    const T* const part = sum + g * slots * d;
    for (std::int64_t c = 0; c < d; ++c) sum[c] += part[c];
  }
  for (std::int64_t c = 0; c < problem_.shape.head_size; ++c)
    set(results_.q, b.head, i, c, scale * (factor * sum[c] + of_mean * mean[c]));
}

/// Turns the sums of the means of one cluster, [blocks][clusters padded][width], into what a member gets: an
/// equal part of the sum of every block whose mean it belongs to. They are summed up from the last block on,
/// as a causal key belongs to the means of all blocks behind it; `front` [blocks + 1][width]: from the first
/// one on.
template <class E>
void VjpSweep<E>::sum_parts(const KeyClusters<T>& keys, std::int64_t cluster, std::int64_t width, T* of_means,
                            T* front) const {
  const auto part = [&](std::int64_t block) { return of_means + (block * plan_.rows + cluster) * width; };
  std::fill_n(front, width, T{0});
  for (std::int64_t b = 0; b < plan_.blocks; ++b) {
    const T count = keys.count[plan_.set_of(b) * plan_.rows + cluster];
    const T factor = count > 0 ? 1 / count : T{0};
    T *const at = part(b), *const sum = front + b * width;
    for (std::int64_t c = 0; c < width; ++c) sum[width + c] = sum[c] + (at[c] *= factor);
  }
  for (std::int64_t b = plan_.blocks - 2; b >= 0; --b) {
    T *const at = part(b), *const next = part(b + 1);
    for (std::int64_t c = 0; c < width; ++c) at[c] += next[c];
  }
}

/// dK and dV of the members of a cluster: their own sums, their parts of those of the means, and those of the
/// blocks that saw them directly.
template <class E>
void VjpSweep<E>::hand_to_members(std::int64_t key_head, std::int64_t cluster, std::int64_t position,
                                  const Memory& m) const {
  const Head& head = heads_[position];
  const KeyClusters<T>& keys = clustering_.of(position);
  const bool sees_rest = plan_.has_direct() && !problem_.mask.is_causal;
  const auto hand = [&](const Rows<E>& to, std::int64_t columns, std::int64_t width, T* of_means,
                        const T* direct, T* members, T* front, T factor) {
    if (!to) return;
    sum_parts(keys, cluster, width, of_means, front);
    std::int64_t behind = 0,
                 ahead = 0;  // blocks from `behind` on, and below `ahead`, have key j in their means
    for (std::int64_t place = keys.begin[cluster]; place < keys.begin[cluster + 1]; ++place) {
      const std::int64_t n = keys.member[place], j = keys.keys[n];
      T* const sum = members + place * width;
      const auto add = [&](const T* part) {
        for (std::int64_t c = 0; c < width; ++c) sum[c] += part[c];
      };
      for (; behind < plan_.blocks && plan_.direct(behind).begin <= j; ++behind) {
      }
      for (; ahead < plan_.blocks && plan_.direct(ahead).end <= j; ++ahead) {
      }
      if (behind < plan_.blocks) add(of_means + (behind * plan_.rows + cluster) * width);
      if (sees_rest) add(front + ahead * width);
      for (std::int64_t b = ahead; b < behind; ++b)
        add(direct + (b * plan_.direct_keys() + n - keys.allowed_before[plan_.direct(b).begin]) * width);
      for (std::int64_t c = 0; c < columns; ++c) set(to, key_head, j, c, sum[c] * factor);
    }
  };
  hand(results_.k, problem_.shape.head_size, plan_.centred.head_size, head.mean_dk, head.direct_dk,
       head.member_dk, m.front_k, static_cast<T>(kLn2));
  hand(results_.v, problem_.shape.value_size, plan_.centred.value_size, head.mean_dv, head.direct_dv,
       head.member_dv, m.front_v, T{1});
}

template <class E>
void VjpSweep<E>::write_excluded(std::int64_t key_head) const {
  const std::uint8_t* const is_allowed = key_mask_at(problem_.mask, key_head, 0);
  for (std::int64_t j = 0; is_allowed != nullptr && j < problem_.shape.keys; ++j) {
    if (is_allowed[j] != 0) continue;
    for (std::int64_t c = 0; results_.k && c < problem_.shape.head_size; ++c)
      set(results_.k, key_head, j, c, T{0});
    for (std::int64_t c = 0; results_.v && c < problem_.shape.value_size; ++c)
      set(results_.v, key_head, j, c, T{0});
  }
}

template class VjpSweep<float>;
template class VjpSweep<double>;

}  // namespace loipe::attention::clustered
