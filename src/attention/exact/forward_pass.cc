// SPDX-License-Identifier: Apache-2.0
#include "attention/exact/forward_pass.h"

namespace loipe::attention {

template <class E>
std::int64_t ForwardPass<E>::range() const {
  // About 512 KiB of queries and sums, so that they stay in the second-level cache.
  const std::int64_t bytes =
      static_cast<std::int64_t>(sizeof(T)) * (centred_.head_size + centred_.value_size) * (tangents_ ? 2 : 1);
  const std::int64_t fitting = (std::int64_t{512} << 10) / std::max<std::int64_t>(bytes, 1);
  return round_up(std::clamp<std::int64_t>(fitting, 64, kLargestRange), kernels_.lanes);
}

template <class E>
ForwardMemory<Accumulator<E>> ForwardPass<E>::take_memory(Arena& arena) const {
  const std::int64_t d = centred_.head_size, dv = centred_.value_size, lanes = kernels_.lanes,
                     queries = range();
  const std::int64_t rows = std::max<std::int64_t>(kKeyRows, lanes), scores = kKeyRows * lanes;
  const std::int64_t tangent = tangents_ != nullptr ? 1 : 0;
  ForwardMemory<T> m{};
  m.q = arena.take<T>(queries * d);
  m.o = arena.take<T>(queries * dv);
  m.maximum = arena.take<T>(queries);
  m.sum = arena.take<T>(queries);
  m.rows = arena.take<T>(rows * std::max(d, dv));
  m.k = arena.take<T>(kKeyRows * d);
  m.v = arena.take<T>(kKeyRows * dv);
  m.scores = arena.take<T>(scores);
  m.additive = arena.take<T>(scores);
  m.tq = arena.take<T>(tangent * queries * d);
  m.o_of_scores = arena.take<T>(tangent * queries * dv);
  m.o_of_values = arena.take<T>(tangent * queries * dv);
  m.tangent_sum = arena.take<T>(tangent * queries);
  m.tk = arena.take<T>(tangent * kKeyRows * d);
  m.tv = arena.take<T>(tangent * kKeyRows * dv);
  m.tangent_scores = arena.take<T>(tangent * scores);
  m.tangent_additive = arena.take<T>(tangent * scores);
  return m;
}

template <class E>
void ForwardPass<E>::pack_queries(const Rows<const E>& rows, const RowRange<T>& range, T* scratch,
                                  T* out) const {
  const std::int64_t d = centred_.head_size, lanes = kernels_.lanes;
  for (std::int64_t begin = 0; begin < range.count; begin += lanes, out += lanes * d) {
    const RowRange<T> panel{range.head, range.first + begin, std::min(lanes, range.count - begin),
                            range.factor};
    load_rows(rows, panel, problem_.shape.head_size, scratch, d, lanes);
    kernels_.transpose(scratch, d, out, lanes, lanes, d);
  }
}

template <class E>
void ForwardPass<E>::begin(std::int64_t head, std::int64_t first, std::int64_t count,
                           const ForwardMemory<T>& m) const {
  const RowRange<T> range{head, first, count, centred_.query_factor()};
  const std::int64_t queries = round_up(count, kernels_.lanes), dv = centred_.value_size;
  pack_queries(problem_.q, range, m.rows, m.q);
  std::fill(m.maximum, m.maximum + queries, kNoScore<T>);
  std::fill(m.sum, m.sum + queries, T{0});
  std::fill(m.o, m.o + queries * dv, T{0});
  if (tangents_ == nullptr) return;
  pack_queries(tangents_->q, range, m.rows, m.tq);
  std::fill(m.tangent_sum, m.tangent_sum + queries, T{0});
  std::fill(m.o_of_scores, m.o_of_scores + queries * dv, T{0});
  std::fill(m.o_of_values, m.o_of_values + queries * dv, T{0});
}

template <class E>
void ForwardPass<E>::pack_row_groups(const Rows<const E>& rows, const RowRange<T>& keys, T* scratch,
                                     T* out) const {
  load_rows(rows, keys, problem_.shape.head_size, scratch, centred_.head_size, kKeyRows);
  to_row_groups(kernels_, scratch, kKeyRows, centred_.head_size, out);
}

template <class E>
void ForwardPass<E>::pack_column_groups(const Rows<const E>& rows, const RowRange<T>& keys, T* scratch,
                                        T* out) const {
  load_rows(rows, keys, problem_.shape.value_size, scratch, centred_.value_size, kKeyRows);
  to_column_groups(scratch, kKeyRows, centred_.value_size, out);
}

template <class E>
void ForwardPass<E>::pack_keys(const RowRange<T>& keys, const ForwardMemory<T>& m) const {
  RowRange<T> centred_keys = keys, centred_values = keys;
  centred_keys.shift = centred_.k_mean_of(keys.head);
  centred_values.shift = centred_.v_mean_of(keys.head);
  pack_row_groups(problem_.k, centred_keys, m.rows, m.k);
  pack_column_groups(problem_.v, centred_values, m.rows, m.v);
  if (tangents_ == nullptr) return;
  pack_row_groups(tangents_->k, keys, m.rows, m.tk);
  pack_column_groups(tangents_->v, keys, m.rows, m.tv);
}

template <class E>
void ForwardPass<E>::take_keys(std::int64_t head, std::int64_t first, std::int64_t count, std::int64_t key,
                               const ForwardMemory<T>& m) const {
  const std::int64_t key_head = problem_.shape.key_head(head);
  TileRange tile{head,  key_head, first,
                 count, key,      std::min<std::int64_t>(kKeyRows, problem_.shape.keys - key)};
  Band band;
  if (!set_band(problem_.mask, tile, tile.keys, band)) return;
  const std::uint8_t* const is_allowed = key_mask_at(problem_.mask, key_head, key);
  const KeyBlock block = key_block(is_allowed, tile.keys);
  if (block == KeyBlock::none_allowed) return;
  RowRange<T> keys{key_head, key, tile.keys};
  keys.is_allowed = is_allowed;
  pack_keys(keys, m);
  for (std::int64_t begin = 0; begin < count; begin += kernels_.lanes) {
    tile.query = first + begin;
    tile.queries = std::min<std::int64_t>(kernels_.lanes, count - begin);
    take_tile(tile, block, begin / kernels_.lanes, m);
  }
}

template <class E>
void ForwardPass<E>::take_tile(const TileRange& tile, KeyBlock block, std::int64_t panel,
                               const ForwardMemory<T>& m) const {
  const std::int64_t d = centred_.head_size, dv = centred_.value_size, lanes = kernels_.lanes;
  JvpTile<T> t{};
  ForwardTile<T>& p = t.primal;
  if (!set_band(problem_.mask, tile, round_up(tile.keys, kGroup), p.band)) return;
  const bool has_additive = block != KeyBlock::all_allowed || problem_.mask.bias;
  if (has_additive)
    load_additive(problem_.mask.bias, key_mask_at(problem_.mask, tile.key_head, tile.key), tile, m.additive,
                  1, lanes);
  p.q = m.q + panel * lanes * d, p.k = m.k, p.v = m.v;
  p.additive = has_additive ? m.additive : nullptr;
  p.scores = m.scores;
  p.maximum = m.maximum + panel * lanes, p.sum = m.sum + panel * lanes, p.o = m.o + panel * lanes * dv;
  p.head_size = d, p.value_size = dv, p.keys = tile.keys;
  if (tangents_ == nullptr) return kernels_.forward(p);
  if (tangents_->bias) load_additive<T>(tangents_->bias, nullptr, tile, m.tangent_additive, 1, lanes);
  t.tq = tangents_->q ? m.tq + panel * lanes * d : nullptr;
  t.tk = tangents_->k ? m.tk : nullptr;
  t.tv = tangents_->v ? m.tv : nullptr;
  t.tangent_additive = tangents_->bias ? m.tangent_additive : nullptr;
  t.tangent_scores = m.tangent_scores;
  t.tangent_sum = m.tangent_sum + panel * lanes;
  t.o_of_scores = m.o_of_scores + panel * lanes * dv, t.o_of_values = m.o_of_values + panel * lanes * dv;
  kernels_.jvp(t);
}

template <class E>
QuerySums<Accumulator<E>> ForwardPass<E>::sums_of(std::int64_t position, const ForwardMemory<T>& m) const {
  const std::int64_t lanes = kernels_.lanes, panel = position / lanes, lane = position % lanes;
  const std::int64_t o = panel * lanes * centred_.value_size + lane;
  if (tangents_ == nullptr)
    return {m.maximum[position], m.sum[position], T{0}, m.o + o, nullptr, nullptr, lanes};
  return {m.maximum[position],
          m.sum[position],
          m.tangent_sum[position],
          m.o + o,
          m.o_of_scores + o,
          m.o_of_values + o,
          lanes};
}

template class ForwardPass<float>;
template class ForwardPass<double>;
template class ForwardPass<Bf16>;

}  // namespace loipe::attention
