// SPDX-License-Identifier: Apache-2.0
#include "attention/almost_linear/pair_tiles.h"

namespace loipe::attention::almost_linear {

template <class E>
PairTiles<E>::PairTiles(const Geometry<E>& geometry, Arena& arena)
    : g_(geometry),
      slope_degree_(g_.approximation.gradient == Gradient::paper ? g_.approximation.degree
                                                                 : g_.approximation.degree - 1) {
  const std::int64_t numbers = g_.problem.shape.kv_heads * (g_.approximation.degree + 1);
  polynomials_ = arena.take<E>(numbers);
  slopes_ = arena.take<E>(numbers);
}

template <class E>
void PairTiles<E>::fill() {
  const int degree = g_.approximation.degree;
  for (std::int64_t h = 0; h < g_.problem.shape.kv_heads; ++h) {
    const std::int64_t at = h * (degree + 1);
    const double* const coefficients = g_.approximation.coefficients + at;
    for (int p = 0; p <= degree; ++p) polynomials_[at + p] = static_cast<E>(coefficients[p]);
    for (int p = 0; p <= slope_degree_; ++p)
      slopes_[at + p] =
          slope_degree_ == degree ? polynomials_[at + p] : static_cast<E>((p + 1) * coefficients[p + 1]);
  }
}

template <class E>
typename PairTiles<E>::Memory PairTiles<E>::take(Arena& arena) const {
  Memory m{};
  for (E** tile : {&m.weights, &m.slopes, &m.products}) *tile = arena.take<E>(g_.panel_of(g_.lanes));
  return m;
}

template <class E>
void PairTiles<E>::weigh(const Tile& tile, const QueryPanel<E>& q, const KeyPanel<E>& k, bool has_slopes,
                         const Memory& m) const {
  g_.kernels.multiply_columns({m.weights, k.x, g_.lanes, q.x, nullptr, g_.lanes, g_.coordinates(), false});
  const std::int64_t at = tile.key_head * (g_.approximation.degree + 1);
  g_.kernels.weigh_pairs({m.weights, g_.lanes, polynomials_ + at, g_.approximation.degree,
                          has_slopes ? slopes_ + at : nullptr, slope_degree_, g_.is_causal(), tile.distance,
                          g_.approximation.window, tile.is_correction, m.weights, m.slopes});
}

template <class E>
void PairTiles<E>::add_weighted_values(const Tile& tile, const QueryPanel<E>& q, const KeyPanel<E>& k,
                                       E* numerators, const Memory& m) const {
  weigh(tile, q, k, false, m);
  g_.kernels.multiply_rows({numerators, k.v, g_.lanes, m.weights, nullptr, g_.pitch, g_.lanes, true});
}

/// With w = P(x) and what arrives at a weight, <(v, 1), d>: dx = P'(x) <(v, 1), d>; dq = sum_k dx k,
/// dk = sum_q dx q, dv = sum_q w dN.
template <class E>
void PairTiles<E>::differentiate(const Tile& tile, const QueryPanel<E>& q, const KeyPanel<E>& k,
                                 const Sums& sums, const Memory& m) const {
  weigh(tile, q, k, true, m);
  if (sums.v != nullptr)
    g_.kernels.multiply_tokens({sums.v, g_.value_size, m.weights, 0, q.d_blocks, 0, g_.lanes, g_.value_size,
                                1, true, nullptr, nullptr, 0});
  if (sums.q == nullptr && sums.k == nullptr) return;
  g_.kernels.multiply_columns({m.products, k.v, g_.lanes, q.d, m.slopes, g_.lanes, g_.pitch, false});
  if (sums.q != nullptr)
    g_.kernels.multiply_rows({sums.q, k.x, g_.lanes, m.products, nullptr, g_.coordinates(), g_.lanes, true});
  if (sums.k != nullptr)
    g_.kernels.multiply_tokens(
        {sums.k, g_.size, m.products, 0, q.x_blocks, 0, g_.lanes, g_.size, 1, true, nullptr, nullptr, 0});
}

template class PairTiles<float>;
template class PairTiles<double>;

}  // namespace loipe::attention::almost_linear
