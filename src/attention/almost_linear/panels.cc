// SPDX-License-Identifier: Apache-2.0
#include "attention/almost_linear/panels.h"

namespace loipe::attention::almost_linear {

template <class E>
PanelPacking<E>::PanelPacking(const Geometry<E>& geometry, const Centres<E>& centres, Arena& arena)
    : g_(geometry), centres_(centres), scales_(arena.take<E>(g_.lanes)) {}

template <class E>
void PanelPacking<E>::fill() {
  std::fill_n(scales_, g_.lanes, static_cast<E>(g_.problem.scale));
}

template <class E>
KeyPanel<E> PanelPacking<E>::keys_at(E* memory, std::int64_t panel) const {
  E* const x = memory + panel * key_numbers();
  return {x, x + g_.panel_of(g_.size), x + g_.panel_of(g_.size + g_.pitch)};
}

template <class E>
E* PanelPacking<E>::take_queries(std::int64_t panels, bool has_cotangents, Arena& arena) const {
  return arena.take<E>(panels * (has_cotangents ? query_numbers() : g_.panel_of(g_.size)));
}

template <class E>
QueryPanel<E> PanelPacking<E>::queries_at(E* memory, std::int64_t panel) const {
  E* const x = memory + panel * query_numbers();
  E* const d = x + 2 * g_.panel_of(g_.size);
  return {x, x + g_.panel_of(g_.size), d, d + g_.panel_of(g_.pitch)};
}

template <class E>
E* PanelPacking<E>::take_scratch(Arena& arena) const {
  return arena.take<E>(g_.panel_of(std::max({g_.head_size, g_.value_size, g_.size}) + g_.head_size));
}

template <class E>
typename PanelPacking<E>::Source PanelPacking<E>::source(const Rows<const E>& from, const RowRange<E>& range,
                                                         std::int64_t columns, std::int64_t width,
                                                         E* scratch) const {
  const bool is_whole = range.count == g_.lanes && columns == width && from && from.column_stride == 1;
  if (is_whole && key_block(range.is_allowed, range.count) == KeyBlock::all_allowed) {
    const E* const rows = from.at(range.head, range.first);
    // The next panel is likely to be read next.
    for (std::int64_t row = g_.lanes; row < 2 * g_.lanes; ++row)
      __builtin_prefetch(rows + row * from.row_stride);
    return {rows, from.row_stride, false};
  }
  load_rows(from, range, columns, scratch, width, g_.lanes);
  return {scratch, width, true};
}

/// to[r][lanes] = sum over c of basis[c][r] in[c][lanes].
template <class E>
void PanelPacking<E>::project(std::int64_t key_head, const E* in, E* to) const {
  std::fill(to, to + g_.panel_of(g_.size), E{0});
  g_.kernels.multiply_columns({to, centres_.basis(key_head), g_.coordinates(), in, nullptr, g_.coordinates(),
                               g_.problem.shape.head_size, false});
}

template <class E>
void PanelPacking<E>::load_keys(std::int64_t key_head, std::int64_t first, const KeyPanel<E>& to,
                                E* scratch) const {
  const Problem<E>& p = g_.problem;
  const std::int64_t count = count_at(first, p.shape.keys);
  RowRange<E> range{key_head, first, count, E{1}, nullptr, key_mask_at(p.mask, key_head, first)};
  const Source v = source(p.v, range, p.shape.value_size, g_.value_size, scratch);
  g_.kernels.transpose(v.rows, v.stride, to.v, g_.lanes, g_.lanes, g_.value_size);
  g_.kernels.pack_columns(v.rows, v.stride, g_.value_size, nullptr, to.blocks);
  E* const admitted = to.v + g_.panel_of(g_.value_size);
  for (std::int64_t t = 0; t < g_.lanes; ++t)
    admitted[t] = t < count && (range.is_allowed == nullptr || range.is_allowed[t] != 0) ? E{1} : E{0};
  if (g_.approximation.is_centred) range.shift = centres_.centre(key_head);
  const Source k = source(p.k, range, p.shape.head_size, g_.head_size, scratch);
  E* const lanes = g_.is_projected() ? scratch + g_.panel_of(g_.head_size) : to.x;
  g_.kernels.transpose(k.rows, k.stride, lanes, g_.lanes, g_.lanes, g_.head_size);
  if (!k.is_copied && range.shift != nullptr) g_.kernels.adjust(lanes, g_.head_size, range.shift, nullptr);
  if (g_.is_projected()) project(key_head, lanes, to.x);
}

template <class E>
void PanelPacking<E>::load_queries(std::int64_t head, std::int64_t first, bool has_blocks,
                                   const QueryPanel<E>& to, E* scratch) const {
  const Problem<E>& p = g_.problem;
  const RowRange<E> range{head, first, count_at(first, p.shape.queries), static_cast<E>(p.scale)};
  const Source q = source(p.q, range, p.shape.head_size, g_.head_size, scratch);
  E* const lanes = g_.is_projected() ? scratch + g_.panel_of(g_.head_size) : to.x;
  g_.kernels.transpose(q.rows, q.stride, lanes, g_.lanes, g_.lanes, g_.head_size);
  if (!q.is_copied) g_.kernels.adjust(lanes, g_.head_size, nullptr, scales_);
  if (g_.is_projected()) project(p.shape.key_head(head), lanes, to.x);
  if (!has_blocks) return;
  if (g_.is_projected()) {
    g_.kernels.transpose(to.x, g_.lanes, scratch, g_.size, g_.size, g_.lanes);
    g_.kernels.pack_columns(scratch, g_.size, g_.size, nullptr, to.x_blocks);
  } else {
    g_.kernels.pack_columns(q.rows, q.stride, g_.size, q.is_copied ? nullptr : scales_, to.x_blocks);
  }
}

template <class E>
void PanelPacking<E>::load_cotangents(const Rows<const E>& g, std::int64_t head, std::int64_t first,
                                      const E* reciprocals, const E* of_denominators, const QueryPanel<E>& to,
                                      E* scratch) const {
  const Shape& s = g_.problem.shape;
  const std::int64_t count = count_at(first, s.queries);
  const Source rows = source(g, RowRange<E>{head, first, count}, s.value_size, g_.value_size, scratch);
  E* const last = to.d + g_.panel_of(g_.value_size);
  for (std::int64_t t = 0; t < g_.lanes; ++t) last[t] = t < count ? of_denominators[t] : E{0};
  for (std::int64_t t = 0; t < count && rows.is_copied; ++t)
    for (std::int64_t c = 0; c < g_.value_size; ++c) scratch[t * g_.value_size + c] *= reciprocals[t];
  g_.kernels.transpose(rows.rows, rows.stride, to.d, g_.lanes, g_.lanes, g_.value_size);
  if (!rows.is_copied) g_.kernels.adjust(to.d, g_.value_size, nullptr, reciprocals);
  g_.kernels.pack_columns(rows.rows, rows.stride, g_.value_size, rows.is_copied ? nullptr : reciprocals,
                          to.d_blocks);
}

template <class E>
E* PanelPacking<E>::unproject(std::int64_t key_head, E* coordinates, E* scratch) const {
  const E* const basis = centres_.basis(key_head);
  if (basis == nullptr) return coordinates;
  std::fill(scratch, scratch + g_.panel_of(g_.head_size), E{0});
  g_.kernels.multiply_rows({scratch, basis, g_.coordinates(), coordinates, nullptr,
                            g_.problem.shape.head_size, g_.coordinates(), false});
  return scratch;
}

template <class E>
void PanelPacking<E>::prefetch(const Rows<E>& to, std::int64_t head, std::int64_t first,
                               std::int64_t tokens) const {
  if (!to) return;
  const std::int64_t count = count_at(first, tokens);
  for (std::int64_t t = 0; t < count; ++t) __builtin_prefetch(to.at(head, first + t), 1);
}

template <class E>
void PanelPacking<E>::store(const E* in, std::int64_t width, const Rows<E>& to, std::int64_t head,
                            std::int64_t first, std::int64_t tokens, std::int64_t columns, E* scratch) const {
  const std::int64_t count = count_at(first, tokens);
  if (count == g_.lanes && columns == width && to.column_stride == 1)
    return g_.kernels.transpose(in, g_.lanes, to.at(head, first), to.row_stride, width, g_.lanes);
  g_.kernels.transpose(in, g_.lanes, scratch, width, width, g_.lanes);
  for (std::int64_t t = 0; t < count; ++t)
    for (std::int64_t c = 0; c < columns; ++c) set(to, head, first + t, c, scratch[t * width + c]);
}

template class PanelPacking<float>;
template class PanelPacking<double>;

}  // namespace loipe::attention::almost_linear
