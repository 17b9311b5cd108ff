// SPDX-License-Identifier: Apache-2.0
#include "attention/almost_linear/panels.h"

namespace loipe::attention::almost_linear {

template <class E>
KeyPanel<E> PanelPacking<E>::take_keys(Arena& arena) const {
  KeyPanel<E> panel{};
  panel.x = arena.take<E>(g_.panel_of(g_.size));
  panel.v = arena.take<E>(g_.panel_of(g_.pitch));
  panel.blocks = arena.take<E>(g_.panel_of(g_.value_size));
  return panel;
}

template <class E>
QueryPanel<E> PanelPacking<E>::take_queries(Arena& arena, bool has_cotangents) const {
  QueryPanel<E> panel{};
  panel.x = arena.take<E>(g_.panel_of(g_.size));
  if (!has_cotangents) return panel;
  panel.x_blocks = arena.take<E>(g_.panel_of(g_.size));
  panel.d = arena.take<E>(g_.panel_of(g_.pitch));
  panel.d_blocks = arena.take<E>(g_.panel_of(g_.value_size));
  return panel;
}

template <class E>
E* PanelPacking<E>::take_scratch(Arena& arena) const {
  return arena.take<E>(g_.panel_of(std::max({g_.head_size, g_.value_size, g_.size}) + g_.head_size));
}

/// x[r][lanes] = sum over c of basis[c][r] rows[lanes][c]; without a basis, x[c][lanes] = rows[lanes][c].
template <class E>
void PanelPacking<E>::pack_coordinates(std::int64_t key_head, const E* rows, E* to, E* scratch) const {
  const E* const basis = centres_.basis(key_head);
  E* const lanes = basis == nullptr ? to : scratch;
  g_.kernels.transpose(rows, g_.head_size, lanes, g_.lanes, g_.lanes, g_.head_size);
  if (basis == nullptr) return;
  std::fill(to, to + g_.panel_of(g_.size), E{0});
  g_.kernels.multiply_columns(
      {to, basis, g_.coordinates(), lanes, nullptr, g_.coordinates(), g_.problem.shape.head_size, false});
}

template <class E>
void PanelPacking<E>::load_keys(std::int64_t key_head, std::int64_t first, const KeyPanel<E>& to,
                                E* scratch) const {
  const Problem<E>& p = g_.problem;
  const std::int64_t count = count_at(first, p.shape.keys);
  RowRange<E> range{key_head, first, count, E{1}, nullptr, key_mask_at(p.mask, key_head, first)};
  load_rows(p.v, range, p.shape.value_size, scratch, g_.value_size, g_.lanes);
  g_.kernels.transpose(scratch, g_.value_size, to.v, g_.lanes, g_.lanes, g_.value_size);
  g_.kernels.pack_columns(scratch, g_.value_size, to.blocks);
  E* const admitted = to.v + g_.panel_of(g_.value_size);
  for (std::int64_t t = 0; t < g_.lanes; ++t)
    admitted[t] = t < count && (range.is_allowed == nullptr || range.is_allowed[t] != 0) ? E{1} : E{0};
  if (g_.approximation.is_centred) range.shift = centres_.centre(key_head);
  load_rows(p.k, range, p.shape.head_size, scratch, g_.head_size, g_.lanes);
  pack_coordinates(key_head, scratch, to.x, scratch + g_.panel_of(g_.head_size));
}

template <class E>
void PanelPacking<E>::load_queries(std::int64_t head, std::int64_t first, bool has_blocks,
                                   const QueryPanel<E>& to, E* scratch) const {
  const Problem<E>& p = g_.problem;
  const RowRange<E> range{head, first, count_at(first, p.shape.queries), static_cast<E>(p.scale)};
  load_rows(p.q, range, p.shape.head_size, scratch, g_.head_size, g_.lanes);
  pack_coordinates(p.shape.key_head(head), scratch, to.x, scratch + g_.panel_of(g_.head_size));
  if (!has_blocks) return;
  if (g_.is_projected()) transpose_back(to.x, g_.size, scratch);
  g_.kernels.pack_columns(scratch, g_.size, to.x_blocks);
}

template <class E>
void PanelPacking<E>::load_cotangents(const Rows<const E>& g, std::int64_t head, std::int64_t first,
                                      const E* reciprocals, const E* of_denominators, const QueryPanel<E>& to,
                                      E* scratch) const {
  const Shape& s = g_.problem.shape;
  const std::int64_t count = count_at(first, s.queries);
  load_rows(g, RowRange<E>{head, first, count}, s.value_size, scratch, g_.value_size, g_.lanes);
  E* const last = to.d + g_.panel_of(g_.value_size);
  for (std::int64_t t = 0; t < g_.lanes; ++t) {
    last[t] = t < count ? of_denominators[t] : E{0};
    for (std::int64_t c = 0; t < count && c < g_.value_size; ++c)
      scratch[t * g_.value_size + c] *= reciprocals[t];
  }
  g_.kernels.transpose(scratch, g_.value_size, to.d, g_.lanes, g_.lanes, g_.value_size);
  g_.kernels.pack_columns(scratch, g_.value_size, to.d_blocks);
}

template <class E>
void PanelPacking<E>::unpack_coordinates(std::int64_t key_head, const E* coordinates, E* rows,
                                         E* scratch) const {
  const E* const basis = centres_.basis(key_head);
  if (basis == nullptr) return transpose_back(coordinates, g_.head_size, rows);
  std::fill(scratch, scratch + g_.panel_of(g_.head_size), E{0});
  g_.kernels.multiply_rows({scratch, basis, g_.coordinates(), coordinates, nullptr,
                            g_.problem.shape.head_size, g_.coordinates(), false});
  transpose_back(scratch, g_.head_size, rows);
}

template class PanelPacking<float>;
template class PanelPacking<double>;

}  // namespace loipe::attention::almost_linear
