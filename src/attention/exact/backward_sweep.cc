// SPDX-License-Identifier: Apache-2.0
#include "attention/exact/backward_sweep.h"

namespace loipe::attention {

namespace {

constexpr std::int64_t kLargestGroups = 16;
/// Of packed blocks and, for elements of few digits, of sums of dK and dV.
constexpr std::int64_t kBlockBytes = std::int64_t{12} << 20, kKeptBytes = std::int64_t{4} << 20;

/// From O, which is rounded before the mean of V is taken from it, the mean of dP has up to so many times
/// the rounding error that it has when computed again.
constexpr double kLargestOffset = 8;

}  // namespace

template <class E>
BackwardSweep<E>::BackwardSweep(const BackwardProblem<E>& backward, int threads, Arena& arena)
    : backward_(backward),
      problem_(backward.problem),
      has_tangents_(backward.tangents != nullptr),
      uses_saved_(backward.saved.o && backward.saved.statistics && !has_tangents_ && std::is_same_v<E, T>),
      centred_(problem_, arena),
      pass_(centred_, backward.tangents),
      lanes_(centred_.kernels.lanes),
      key_tiles_(divide_up(problem_.shape.keys, lanes_)),
      groups_(std::clamp<std::int64_t>(key_tiles_, 1, kLargestGroups)),
      blocks_of_head_(problem_.shape.readers() * divide_up(problem_.shape.queries, kQueryRows)) {
  const std::int64_t d = centred_.head_size, dv = centred_.value_size;
  Arena one_block;
  take_block(one_block, d, dv, groups_, has_tangents_);
  block_bytes_ = one_block.used();
  const std::int64_t fitting =
      std::max<std::int64_t>(kBlockBytes / static_cast<std::int64_t>(block_bytes_), 1);
  const std::int64_t chunks = std::max<std::int64_t>(divide_up(blocks_of_head_, fitting), 1);
  chunk_blocks_ = divide_up(blocks_of_head_, chunks);
  wave_heads_ = chunks > 1 ? 1
                           : std::clamp<std::int64_t>(fitting / std::max<std::int64_t>(blocks_of_head_, 1), 1,
                                                      std::max<std::int64_t>(problem_.shape.kv_heads, 1));
  blocks_memory_ =
      arena.take<std::byte>(static_cast<std::int64_t>(block_bytes_) * wave_heads_ * chunk_blocks_);
  kept_tiles_ = 0;
  if (!std::is_same_v<E, T> && chunks > 1) {
    const std::int64_t tile_bytes = static_cast<std::int64_t>(sizeof(T)) * (d + dv) * lanes_;
    kept_tiles_ = std::clamp<std::int64_t>(kKeptBytes / tile_bytes, 1, std::max<std::int64_t>(key_tiles_, 1));
  }
  kept_ = arena.take<T>(kept_tiles_ * (d + dv) * lanes_);
  Arena forward, keys;
  take_scratch(forward);
  pass_.take_memory(forward);
  take_key_memory(keys);
  memory_ = ThreadMemory(arena, std::max(forward.used(), keys.used()), threads);
}

template <class E>
typename BackwardSweep<E>::Block BackwardSweep<E>::take_block(Arena& arena, std::int64_t d, std::int64_t dv,
                                                              std::int64_t groups, bool has_tangents) {
  constexpr std::int64_t kR = kQueryRows;
  const std::int64_t tangent = has_tangents ? kR : 0;
  Block b{};
  for (T** rows : {&b.q, &b.qc}) *rows = arena.take<T>(kR * d);
  for (T** rows : {&b.g, &b.gc}) *rows = arena.take<T>(kR * dv);
  for (T** numbers : {&b.maximum, &b.mean, &b.reciprocal_sum}) *numbers = arena.take<T>(kR);
  for (T** rows : {&b.tq, &b.tqc}) *rows = arena.take<T>(tangent * d);
  for (T** rows : {&b.tg, &b.tgc}) *rows = arena.take<T>(tangent * dv);
  for (T** numbers : {&b.tangent_mean_score, &b.tangent_mean}) *numbers = arena.take<T>(tangent);
  b.dq = arena.take<T>(groups * kR * d);
  return b;
}

template <class E>
typename BackwardSweep<E>::Block BackwardSweep<E>::block_at(std::int64_t position) const {
  Arena arena({blocks_memory_ + block_bytes_ * static_cast<std::size_t>(position), block_bytes_});
  return take_block(arena, centred_.head_size, centred_.value_size, groups_, has_tangents_);
}

template <class E>
Accumulator<E>* BackwardSweep<E>::take_scratch(Arena& arena) const {
  return arena.take<T>(kQueryRows * std::max(centred_.head_size, centred_.value_size));
}

template <class E>
typename BackwardSweep<E>::KeyTile BackwardSweep<E>::take_key_tile(Arena& arena) const {
  const std::int64_t d = centred_.head_size * lanes_, dv = centred_.value_size * lanes_;
  const std::int64_t tangent = has_tangents_ ? 1 : 0;
  KeyTile tile{};
  for (T** rows : {&tile.kt, &tile.k, &tile.dk}) *rows = arena.take<T>(d);
  for (T** rows : {&tile.vt, &tile.dv}) *rows = arena.take<T>(dv);
  for (T** rows : {&tile.tkt, &tile.tk}) *rows = arena.take<T>(tangent * d);
  tile.tvt = arena.take<T>(tangent * dv);
  return tile;
}

template <class E>
typename BackwardSweep<E>::KeyMemory BackwardSweep<E>::take_key_memory(Arena& arena) const {
  const std::int64_t scores = kQueryRows * lanes_, tangent = has_tangents_ ? 1 : 0;
  KeyMemory m{};
  for (KeyTile& tile : m.tiles) tile = take_key_tile(arena);
  m.rows = arena.take<T>(lanes_ * centred_.value_size);
  for (T** tile : {&m.weights, &m.dx, &m.additive}) *tile = arena.take<T>(scores);
  for (T** tile : {&m.tangent_weights, &m.tangent_dx, &m.tangent_additive})
    *tile = arena.take<T>(tangent * scores);
  return m;
}

template <class E>
typename BackwardSweep<E>::Place BackwardSweep<E>::place_of(std::int64_t key_head, std::int64_t block) const {
  const std::int64_t blocks_of_reader = divide_up(problem_.shape.queries, kQueryRows);
  const std::int64_t first = block % blocks_of_reader * kQueryRows;
  return {key_head * problem_.shape.readers() + block / blocks_of_reader, first,
          std::min<std::int64_t>(kQueryRows, problem_.shape.queries - first)};
}

template <class E>
void BackwardSweep<E>::run(const Parallel& parallel) {
  const Shape& s = problem_.shape;
  const InputCotangents<E>& results = backward_.results;
  centred_.compute_means(parallel);
  for (std::int64_t h = 0; results.bias && h < s.heads; ++h)
    for (std::int64_t i = 0; i < s.queries; ++i)
      for (std::int64_t j = 0; j < s.keys; ++j) set(results.bias, h, i, j, T{0});
  const bool has_q{results.q}, has_keys = results.k || results.v;
  if (kept_tiles_ == 0) return sweep(parallel, {has_q, has_keys, 0, key_tiles_});
  sweep(parallel, {has_q, false, 0, key_tiles_});
  for (std::int64_t tile = 0; has_keys && tile < key_tiles_; tile += kept_tiles_)
    sweep(parallel, {false, true, tile, std::min(kept_tiles_, key_tiles_ - tile)});
}

template <class E>
void BackwardSweep<E>::sweep(const Parallel& parallel, const Part& part) {
  const bool has_bias = backward_.results.bias && (part.has_q || !part.has_keys || kept_tiles_ == 0);
  for (std::int64_t head = 0; head < problem_.shape.kv_heads; head += wave_heads_)
    for (std::int64_t block = 0; block == 0 || block < blocks_of_head_;
         block += std::max<std::int64_t>(chunk_blocks_, 1)) {
      const std::int64_t heads = std::min(wave_heads_, problem_.shape.kv_heads - head);
      const std::int64_t blocks = std::min(chunk_blocks_, blocks_of_head_ - block);
      const Chunk chunk{head, heads, block, blocks, block == 0, block + blocks == blocks_of_head_};
      pack(parallel, chunk);
      if (part.has_q || part.has_keys)
        for_each(parallel, heads * groups_, [&](std::int64_t task, int thread) {
          Arena own = memory_.of(thread);
          run_group(chunk, part, head + task / groups_, task % groups_, take_key_memory(own));
        });
      if (part.has_q)
        for_each(parallel, heads * blocks, [&](std::int64_t task, int) {
          reduce(place_of(head + task / blocks, block + task % blocks), block_at(task));
        });
      if (has_bias) add_bias(parallel, chunk);
    }
}

template <class E>
void BackwardSweep<E>::pack(const Parallel& parallel, const Chunk& chunk) {
  // Neighbouring blocks of one query head share the packing of keys when their statistics are computed.
  const std::int64_t together = std::max<std::int64_t>(pass_.range() / kQueryRows, 1);
  const std::int64_t ranges = divide_up(chunk.blocks, together);
  for_each(parallel, chunk.key_heads * ranges, [&](std::int64_t task, int thread) {
    const std::int64_t head = task / ranges, end = std::min((task % ranges + 1) * together, chunk.blocks);
    for (std::int64_t at = task % ranges * together; at < end;)
      at += pack_range(chunk, {chunk.key_head + head, at, end}, head * chunk.blocks + at, memory_.of(thread));
  });
}

template <class E>
std::int64_t BackwardSweep<E>::pack_range(const Chunk& chunk, const BlockRange& range, std::int64_t position,
                                          Arena memory) const {
  T* const scratch = take_scratch(memory);
  const auto place = [&](std::int64_t b) { return place_of(range.key_head, chunk.block + range.begin + b); };
  Place all = place(0);
  std::int64_t blocks = 0;
  for (; range.begin + blocks < range.end && place(blocks).head == all.head; ++blocks) {
    pack_queries(place(blocks), block_at(position + blocks), scratch);
    all.count = place(blocks).first + place(blocks).count - all.first;
  }
  if (uses_saved_ && centred_.v_offset[range.key_head] < kLargestOffset)
    for (std::int64_t b = 0; b < blocks; ++b) set_saved_statistics(place(b), block_at(position + b));
  else
    pass_.run(all.head, all.first, all.count, pass_.take_memory(memory),
              [&](std::int64_t i, const QuerySums<T>& sums) {
                set_row(all, block_at(position + (i - all.first) / kQueryRows), i, sums);
              });
  for (std::int64_t b = 0; b < blocks; ++b) pack_cotangents(place(b), block_at(position + b), scratch);
  return blocks;
}

template <class E>
void BackwardSweep<E>::pack_queries(const Place& place, const Block& block, T* scratch) const {
  const std::int64_t d = centred_.head_size;
  const RowRange<T> rows{place.head, place.first, place.count, centred_.query_factor()};
  const auto pack = [&](const Rows<const E>& from, T* row_groups, T* column_groups) {
    load_rows(from, rows, problem_.shape.head_size, scratch, d, kQueryRows);
    to_row_groups(centred_.kernels, scratch, kQueryRows, d, row_groups);
    to_column_groups(scratch, kQueryRows, d, column_groups);
  };
  pack(problem_.q, block.q, block.qc);
  if (has_tangents_) pack(backward_.tangents->q, block.tq, block.tqc);
  for (T* numbers : {block.maximum, block.mean, block.reciprocal_sum})
    std::fill(numbers, numbers + kQueryRows, T{0});
  for (T* numbers : {block.tangent_mean_score, block.tangent_mean})
    if (has_tangents_) std::fill(numbers, numbers + kQueryRows, T{0});
}

/// A VJP needs the cotangents over the sums; its tangent needs both apart.
template <class E>
void BackwardSweep<E>::pack_cotangents(const Place& place, const Block& block, T* scratch) const {
  const std::int64_t dv = centred_.value_size;
  const auto pack = [&](const Rows<const E>& from, bool is_over_sums, T* row_groups, T* column_groups) {
    load_rows(from, RowRange<T>{place.head, place.first, place.count}, problem_.shape.value_size, scratch, dv,
              kQueryRows);
    // Of a row without keys nothing is multiplied: its cotangents may be infinite.
    for (std::int64_t row = 0; row < kQueryRows; ++row)
      if (block.reciprocal_sum[row] == 0) std::fill_n(scratch + row * dv, dv, T{0});
      else if (is_over_sums)
        for (std::int64_t c = 0; c < dv; ++c) scratch[row * dv + c] *= block.reciprocal_sum[row];
    to_row_groups(centred_.kernels, scratch, kQueryRows, dv, row_groups);
    to_column_groups(scratch, kQueryRows, dv, column_groups);
  };
  pack(backward_.cotangents.o, !has_tangents_, block.g, block.gc);
  if (has_tangents_) pack(backward_.cotangent_tangents->o, false, block.tg, block.tgc);
}

namespace {

template <class E>
double lse_cotangent(const Cotangents<E>& cotangents, std::int64_t h, std::int64_t i) {
  return cotangents.lse ? static_cast<double>(get(cotangents.lse, h, i, 0)) : 0.0;
}

}  // namespace

/// mean = <g, O> - dL/dlse over the sum, with O centred as the values are.
template <class E>
void BackwardSweep<E>::set_saved_statistics(const Place& place, const Block& block) const {
  const T* const shift = centred_.v_mean_of(problem_.shape.key_head(place.head));
  for (std::int64_t row = 0; row < place.count; ++row) {
    const std::int64_t i = place.first + row;
    const T sum = get(backward_.saved.statistics, place.head, i, 1);
    block.maximum[row] = get(backward_.saved.statistics, place.head, i, 0);
    if (sum == 0) continue;
    block.reciprocal_sum[row] = 1 / sum;
    double mean = -lse_cotangent(backward_.cotangents, place.head, i);
    for (std::int64_t c = 0; backward_.cotangents.o && c < problem_.shape.value_size; ++c)
      mean += static_cast<double>(get(backward_.cotangents.o, place.head, i, c)) *
              (static_cast<double>(get(backward_.saved.o, place.head, i, c)) - static_cast<double>(shift[c]));
    block.mean[row] = static_cast<T>(mean) * block.reciprocal_sum[row];
  }
}

/// The same from the sums of the row, and the tangents: with O' as in jvp,
/// tangent_mean = <tg, O> + <g, O'> - d(dL/dlse).
template <class E>
void BackwardSweep<E>::set_row(const Place& place, const Block& block, std::int64_t i,
                               const QuerySums<T>& sums) const {
  const std::int64_t row = (i - place.first) % kQueryRows;
  const auto number = [&](const Rows<const E>& rows, std::int64_t c) {
    return rows ? static_cast<double>(get(rows, place.head, i, c)) : 0.0;
  };
  const T reciprocal = sums.sum != 0 ? 1 / sums.sum : T{0};
  block.maximum[row] = sums.maximum;
  block.reciprocal_sum[row] = reciprocal;
  if (sums.sum == 0) return;
  double mean = -lse_cotangent(backward_.cotangents, place.head, i);
  double tangent_mean = has_tangents_ ? -lse_cotangent(*backward_.cotangent_tangents, place.head, i) : 0;
  const double mean_score = static_cast<double>(sums.tangent_sum * reciprocal);
  for (std::int64_t c = 0; c < problem_.shape.value_size; ++c) {
    const double g = number(backward_.cotangents.o, c);
    const double o = static_cast<double>(sums.o[c * sums.stride]) * static_cast<double>(reciprocal);
    mean += g * o;
    if (!has_tangents_) continue;
    const auto over_sum = [&](const T* at) {
      return static_cast<double>(at[c * sums.stride]) * static_cast<double>(reciprocal);
    };
    const double to = over_sum(sums.o_of_values) + kLn2 * (over_sum(sums.o_of_scores) - mean_score * o);
    tangent_mean += number(backward_.cotangent_tangents->o, c) * o + g * to;
  }
  block.mean[row] = static_cast<T>(mean);
  if (!has_tangents_) {
    block.mean[row] *= reciprocal;
    return;
  }
  block.tangent_mean[row] = static_cast<T>(tangent_mean);
  block.tangent_mean_score[row] = static_cast<T>(kLn2 * mean_score);
}

template <class E>
void BackwardSweep<E>::run_group(const Chunk& chunk, const Part& part, std::int64_t key_head,
                                 std::int64_t group, const KeyMemory& m) {
  const std::int64_t position = (key_head - chunk.key_head) * chunk.blocks;
  const std::int64_t dq_size = kQueryRows * centred_.head_size;
  for (std::int64_t b = 0; part.has_q && b < chunk.blocks; ++b) {
    T* const dq = block_at(position + b).dq + group * dq_size;
    std::fill(dq, dq + dq_size, T{0});
  }
  const std::int64_t end = part.tile + part.tiles;
  for (std::int64_t first = part.tile + group; first < end; first += kStrip * groups_)
    run_strip(chunk, part, {key_head, group, first, std::min(kStrip, divide_up(end - first, groups_))}, m);
}

template <class E>
void BackwardSweep<E>::run_strip(const Chunk& chunk, const Part& part, const Strip& strip,
                                 const KeyMemory& m) {
  const std::int64_t key_head = strip.key_head;
  const std::int64_t position = (key_head - chunk.key_head) * chunk.blocks;
  KeyBlock allowed[kStrip];
  for (std::int64_t s = 0; s < strip.tiles; ++s) {
    const std::int64_t tile = strip.first + s * groups_;
    if (part.has_keys) begin_keys(chunk, tile - part.tile, m.tiles[s]);
    allowed[s] = pack_keys(key_head, tile, m.tiles[s], m.rows);
  }
  for (std::int64_t b = 0; b < chunk.blocks; ++b) {
    const Place place = place_of(key_head, chunk.block + b);
    const Block block = block_at(position + b);
    T* const dq = block.dq + strip.group * kQueryRows * centred_.head_size;
    for (std::int64_t s = 0; s < strip.tiles; ++s) {
      const std::int64_t key = (strip.first + s * groups_) * lanes_;
      const TileRange range{place.head,  key_head, place.first,
                            place.count, key,      std::min(lanes_, problem_.shape.keys - key)};
      take_block_of_queries(range, allowed[s], block, dq, part, m, m.tiles[s]);
    }
  }
  for (std::int64_t s = 0; part.has_keys && s < strip.tiles; ++s) {
    const std::int64_t tile = strip.first + s * groups_;
    finish_keys(chunk, key_head, tile, tile - part.tile, m.tiles[s]);
  }
}

template <class E>
KeyBlock BackwardSweep<E>::pack_keys(std::int64_t key_head, std::int64_t tile, const KeyTile& m,
                                     T* scratch) const {
  const std::int64_t d = centred_.head_size, dv = centred_.value_size, first = tile * lanes_;
  RowRange<T> keys{key_head, first, std::min(lanes_, problem_.shape.keys - first)};
  keys.is_allowed = key_mask_at(problem_.mask, key_head, first);
  const KeyBlock allowed = key_block(keys.is_allowed, keys.count);
  if (allowed == KeyBlock::none_allowed) return allowed;
  const auto load = [&](const Rows<const E>& rows, const T* shift, std::int64_t columns, std::int64_t width,
                        T* natural, T* transposed) {
    keys.shift = shift;
    load_rows(rows, keys, columns, natural, width, lanes_);
    centred_.kernels.transpose(natural, width, transposed, lanes_, lanes_, width);
  };
  const Shape& s = problem_.shape;
  load(problem_.k, centred_.k_mean_of(key_head), s.head_size, d, m.k, m.kt);
  load(problem_.v, centred_.v_mean_of(key_head), s.value_size, dv, scratch, m.vt);
  if (!has_tangents_) return allowed;
  load(backward_.tangents->k, nullptr, s.head_size, d, m.tk, m.tkt);
  load(backward_.tangents->v, nullptr, s.value_size, dv, scratch, m.tvt);
  return allowed;
}

template <class E>
void BackwardSweep<E>::begin_keys(const Chunk& chunk, std::int64_t kept, const KeyTile& m) const {
  const std::int64_t dk = centred_.head_size * lanes_, dv = centred_.value_size * lanes_;
  if (kept_tiles_ == 0 || chunk.is_first) {
    std::fill(m.dk, m.dk + dk, T{0});
    std::fill(m.dv, m.dv + dv, T{0});
    return;
  }
  const T* const from = kept_ + kept * (dk + dv);
  std::copy(from, from + dk, m.dk);
  std::copy(from + dk, from + dk + dv, m.dv);
}

template <class E>
void BackwardSweep<E>::take_block_of_queries(const TileRange& tile, KeyBlock allowed, const Block& block,
                                             T* dq, const Part& part, const KeyMemory& m,
                                             const KeyTile& keys) const {
  BackwardTangentTile<T> t{};
  BackwardTile<T>& p = t.primal;
  if (allowed == KeyBlock::none_allowed || !set_band(problem_.mask, tile, lanes_, p.band)) return;
  const bool has_additive = allowed != KeyBlock::all_allowed || problem_.mask.bias;
  const auto additive = [&](const Rows<const T>& bias, const std::uint8_t* is_allowed, T* out) {
    std::fill(out, out + kQueryRows * lanes_, T{0});
    load_additive(bias, is_allowed, tile, out, lanes_, 1);
    return out;
  };
  if (has_additive)
    p.additive =
        additive(problem_.mask.bias, key_mask_at(problem_.mask, tile.key_head, tile.key), m.additive);
  const InputCotangents<E>& results = backward_.results;
  p.q = block.q, p.g = block.g, p.qc = block.qc, p.gc = block.gc;
  p.kt = keys.kt, p.vt = keys.vt, p.k = keys.k;
  p.maximum = block.maximum, p.mean = block.mean;
  p.weights = m.weights;
  p.dk = part.has_keys && results.k ? keys.dk : nullptr;
  p.dv = part.has_keys && results.v ? keys.dv : nullptr;
  p.dq = part.has_q ? dq : nullptr;
  p.dx = p.dk != nullptr || p.dq != nullptr || p.dv == nullptr ? m.dx : nullptr;
  p.head_size = centred_.head_size, p.value_size = centred_.value_size;
  p.queries = round_up(tile.queries, kGroup), p.keys = tile.keys;
  if (!has_tangents_) return centred_.kernels.backward(p);
  if (backward_.tangents->bias)
    t.tangent_additive = additive(backward_.tangents->bias, nullptr, m.tangent_additive);
  p.dx = m.dx;
  t.tq = block.tq, t.tg = block.tg, t.tqc = block.tqc, t.tgc = block.tgc;
  t.tkt = keys.tkt, t.tvt = keys.tvt, t.tk = keys.tk;
  t.reciprocal_sum = block.reciprocal_sum, t.tangent_mean_score = block.tangent_mean_score;
  t.tangent_mean = block.tangent_mean;
  t.tangent_weights = m.tangent_weights, t.tangent_dx = m.tangent_dx;
  centred_.kernels.backward_tangent(t);
}

template <class E>
void BackwardSweep<E>::finish_keys(const Chunk& chunk, std::int64_t key_head, std::int64_t tile,
                                   std::int64_t kept, const KeyTile& m) const {
  const std::int64_t dk = centred_.head_size * lanes_, dv = centred_.value_size * lanes_;
  if (kept_tiles_ != 0 && !chunk.is_last) {
    T* const to = kept_ + kept * (dk + dv);
    std::copy(m.dk, m.dk + dk, to);
    std::copy(m.dv, m.dv + dv, to + dk);
    return;
  }
  const bool adds = kept_tiles_ == 0 && !chunk.is_first;
  const std::int64_t first = tile * lanes_, count = std::min(lanes_, problem_.shape.keys - first);
  const auto write = [&](const Rows<E>& rows, const T* sums, std::int64_t columns, T factor) {
    for (std::int64_t j = 0; rows && j < count; ++j)
      for (std::int64_t c = 0; c < columns; ++c) {
        const T value = sums[c * lanes_ + j] * factor;
        set(rows, key_head, first + j, c, adds ? get(rows, key_head, first + j, c) + value : value);
      }
  };
  // The packed queries hold scale log2(e).
  write(backward_.results.k, m.dk, problem_.shape.head_size, static_cast<T>(kLn2));
  write(backward_.results.v, m.dv, problem_.shape.value_size, T{1});
}

/// The rows of dX sum to dL/dlse, not to 0, so that centring the keys takes that much of their mean away.
template <class E>
void BackwardSweep<E>::reduce(const Place& place, const Block& block) const {
  const std::int64_t d = centred_.head_size;
  const Cotangents<E>& lse = has_tangents_ ? *backward_.cotangent_tangents : backward_.cotangents;
  const T* const mean = centred_.k_mean_of(problem_.shape.key_head(place.head));
  const T scale = static_cast<T>(problem_.scale);
  for (std::int64_t row = 0; row < place.count; ++row) {
    const bool has_keys = block.reciprocal_sum[row] != 0;
    const T of_mean = has_keys ? static_cast<T>(lse_cotangent(lse, place.head, place.first + row)) : T{0};
    for (std::int64_t c = 0; c < problem_.shape.head_size; ++c) {
      T sum = of_mean * mean[c];
      for (std::int64_t g = 0; g < groups_; ++g) sum += block.dq[(g * kQueryRows + row) * d + c];
      set(backward_.results.q, place.head, place.first + row, c, scale * sum);
    }
  }
}

/// A tile of keys belongs to one task, and so does its part of the bias.
template <class E>
void BackwardSweep<E>::add_bias(const Parallel& parallel, const Chunk& chunk) {
  const Rows<T>& bias = backward_.results.bias;
  const std::int64_t tasks = bias.column_stride == 0 ? 1 : key_tiles_;
  for_each(parallel, tasks, [&](std::int64_t task, int thread) {
    Arena own = memory_.of(thread);
    const KeyMemory m = take_key_memory(own);
    for (std::int64_t tile = task; tile < key_tiles_; tile += tasks)
      for (std::int64_t w = 0; w < chunk.key_heads; ++w) {
        const std::int64_t key_head = chunk.key_head + w, key = tile * lanes_;
        const std::int64_t keys = std::min(lanes_, problem_.shape.keys - key);
        const KeyBlock allowed = pack_keys(key_head, tile, m.tiles[0], m.rows);
        if (allowed == KeyBlock::none_allowed) continue;
        for (std::int64_t b = 0; b < chunk.blocks; ++b) {
          const Place place = place_of(key_head, chunk.block + b);
          const Block block = block_at(w * chunk.blocks + b);
          const TileRange range{place.head, key_head, place.first, place.count, key, keys};
          Band band;
          if (!set_band(problem_.mask, range, lanes_, band)) continue;
          take_block_of_queries(range, allowed, block, nullptr, {false, false, 0, 0}, m, m.tiles[0]);
          const T* const dx = has_tangents_ ? m.tangent_dx : m.dx;
          for (std::int64_t i = 0; i < place.count; ++i)
            for (std::int64_t j = 0; j < keys; ++j)
              bias.at(place.head, place.first + i)[(key + j) * bias.column_stride] += dx[i * lanes_ + j];
        }
      }
  });
}

template class BackwardSweep<float>;
template class BackwardSweep<double>;
template class BackwardSweep<Bf16>;

}  // namespace loipe::attention
