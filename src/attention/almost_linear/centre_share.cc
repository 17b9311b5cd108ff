// SPDX-License-Identifier: Apache-2.0
#include "attention/almost_linear/centre_share.h"

namespace loipe::attention::almost_linear {

template <class E>
CentreShare<E>::CentreShare(const BackwardProblem<E>& backward, const Geometry<E>& geometry,
                            const Centres<E>& centres, Arena& arena)
    : backward_(backward), g_(geometry), centres_(centres) {
  const Shape& s = g_.problem.shape;
  of_queries_ = arena.take<double>(s.heads * g_.query_chunks * s.head_size);
  of_keys_ = arena.take<double>(s.kv_heads * g_.key_chunks * s.head_size);
  shares_ = arena.take<E>(s.kv_heads * s.head_size);
}

/// The paper's formulas have no derivative by the centre: the rows of dX sum to dlse, and so what would reach
/// the centre through the keys cancels with what does through lse.
template <class E>
bool CentreShare<E>::is_wanted() const {
  return backward_.results.k && g_.approximation.is_centred && g_.approximation.gradient != Gradient::paper;
}

template <class E>
void CentreShare<E>::add_queries(std::int64_t head, std::int64_t first, std::int64_t end) const {
  const Problem<E>& p = g_.problem;
  const Rows<const E>& of_lse = backward_.cotangents.lse;
  if (!of_lse) return;
  double* const sums = of_queries_ + (head * g_.query_chunks + first / g_.chunk) * p.shape.head_size;
  if (first % g_.chunk == 0) std::fill(sums, sums + p.shape.head_size, 0.0);
  for (std::int64_t i = first; i < end; ++i) {
    if (!centres_.has_keys(p.shape.key_head(head), i)) continue;
    const double factor = p.scale * static_cast<double>(get(of_lse, head, i, 0));
    for (std::int64_t c = 0; c < p.shape.head_size; ++c)
      sums[c] += factor * static_cast<double>(get(p.q, head, i, c));
  }
}

/// Rows of keys that the key mask excludes are 0.
template <class E>
void CentreShare<E>::sum_keys(std::int64_t key_head, std::int64_t chunk) const {
  const Shape& s = g_.problem.shape;
  const Rows<E>& dk = backward_.results.k;
  const std::int64_t begin = chunk * g_.chunk, end = std::min(begin + g_.chunk, s.keys);
  double* const sums = of_keys_ + (key_head * g_.key_chunks + chunk) * s.head_size;
  std::fill(sums, sums + s.head_size, 0.0);
  if (dk.column_stride == 1)
    return g_.kernels.sum_rows(dk.at(key_head, begin), dk.row_stride, end - begin, s.head_size, sums);
  for (std::int64_t j = begin; j < end; ++j)
    for (std::int64_t c = 0; c < s.head_size; ++c)
      sums[c] += static_cast<double>(dk.at(key_head, j)[c * dk.column_stride]);
}

template <class E>
void CentreShare<E>::share(const Parallel& parallel) const {
  const Shape& s = g_.problem.shape;
  const std::int64_t key_chunks = g_.key_chunks, query_chunks = s.readers() * g_.query_chunks;
  for_each(parallel, s.kv_heads, [&](std::int64_t h, int) {
    for (std::int64_t c = 0; c < s.head_size; ++c) {
      double sum = 0;
      for (std::int64_t chunk = 0; chunk < key_chunks; ++chunk)
        sum -= of_keys_[(h * key_chunks + chunk) * s.head_size + c];
      for (std::int64_t chunk = 0; backward_.cotangents.lse && chunk < query_chunks; ++chunk)
        sum += of_queries_[(h * query_chunks + chunk) * s.head_size + c];
      const auto count = static_cast<double>(std::max<std::int64_t>(centres_.admitted(h), 1));
      shares_[h * s.head_size + c] = static_cast<E>(sum / count);
    }
  });
  for_each(parallel, s.kv_heads * key_chunks,
           [&](std::int64_t task, int) { add_share(task / key_chunks, task % key_chunks); });
}

template <class E>
void CentreShare<E>::add_share(std::int64_t key_head, std::int64_t chunk) const {
  const Shape& s = g_.problem.shape;
  const Rows<E>& dk = backward_.results.k;
  const E* const share = shares_ + key_head * s.head_size;
  const std::uint8_t* const is_admitted = key_mask_at(g_.problem.mask, key_head, 0);
  const std::int64_t begin = chunk * g_.chunk, end = std::min(begin + g_.chunk, s.keys);
  if (is_admitted == nullptr && dk.column_stride == 1)
    return g_.kernels.add_row(dk.at(key_head, begin), dk.row_stride, end - begin, s.head_size, share);
  for (std::int64_t j = begin; j < end; ++j)
    for (std::int64_t c = 0; (is_admitted == nullptr || is_admitted[j] != 0) && c < s.head_size; ++c)
      dk.at(key_head, j)[c * dk.column_stride] += share[c];
}

template class CentreShare<float>;
template class CentreShare<double>;

}  // namespace loipe::attention::almost_linear
