// SPDX-License-Identifier: Apache-2.0
#include "attention/almost_linear/centres.h"

namespace loipe::attention::almost_linear {

namespace {

constexpr std::int64_t kKeysOfPart = 2048;

}  // namespace

template <class E>
Centres<E>::Centres(const Geometry<E>& geometry, Arena& arena) : g_(geometry) {
  const Shape& s = g_.problem.shape;
  parts_ = divide_up(s.keys, kKeysOfPart);
  centres_ = arena.take<E>(s.kv_heads * g_.head_size);
  basis_ = arena.take<E>(g_.is_projected() ? s.kv_heads * s.head_size * g_.coordinates() : 0);
  if (!g_.is_projected()) basis_ = nullptr;
  sums_ = arena.take<double>(s.kv_heads * parts_ * g_.head_size);
  counts_ = arena.take<std::int64_t>(s.kv_heads * parts_);
  admitted_ = arena.take<std::int64_t>(s.kv_heads);
  first_ = arena.take<std::int64_t>(s.kv_heads);
}

template <class E>
void Centres<E>::sum(std::int64_t key_head, std::int64_t part) {
  const Problem<E>& p = g_.problem;
  const std::uint8_t* const is_admitted = key_mask_at(p.mask, key_head, 0);
  double* const sums = sums_ + (key_head * parts_ + part) * g_.head_size;
  std::int64_t& count = counts_[key_head * parts_ + part];
  std::fill(sums, sums + g_.head_size, 0.0);
  count = 0;
  const std::int64_t end = std::min((part + 1) * kKeysOfPart, p.shape.keys);
  const std::int64_t begin = part * kKeysOfPart;
  if (is_admitted == nullptr && p.k.column_stride == 1) {
    count = end - begin;
    if (g_.approximation.is_centred)
      g_.kernels.sum_rows(p.k.at(key_head, begin), p.k.row_stride, count, p.shape.head_size, sums);
    return;
  }
  for (std::int64_t j = begin; j < end; ++j) {
    if (is_admitted != nullptr && is_admitted[j] == 0) continue;
    ++count;
    for (std::int64_t c = 0; g_.approximation.is_centred && c < p.shape.head_size; ++c)
      sums[c] += static_cast<double>(get(p.k, key_head, j, c));
  }
}

template <class E>
void Centres<E>::compute(const Parallel& parallel) {
  const Shape& s = g_.problem.shape;
  for_each(parallel, s.kv_heads * parts_, [&](std::int64_t task, int) { sum(task / parts_, task % parts_); });
  for (std::int64_t h = 0; h < s.kv_heads; ++h) {
    E* const centre = centres_ + h * g_.head_size;
    std::fill(centre, centre + g_.head_size, E{0});
    admitted_[h] = 0;
    for (std::int64_t part = 0; part < parts_; ++part) admitted_[h] += counts_[h * parts_ + part];
    for (std::int64_t c = 0; c < s.head_size && g_.approximation.is_centred && admitted_[h] > 0; ++c) {
      double total = 0;
      for (std::int64_t part = 0; part < parts_; ++part)
        total += sums_[(h * parts_ + part) * g_.head_size + c];
      centre[c] = static_cast<E>(total / static_cast<double>(admitted_[h]));
    }
    const std::uint8_t* const is_admitted = key_mask_at(g_.problem.mask, h, 0);
    first_[h] = is_admitted == nullptr
                    ? 0
                    : std::find_if(is_admitted, is_admitted + s.keys, [](std::uint8_t m) { return m != 0; }) -
                          is_admitted;
    if (admitted_[h] == 0) first_[h] = std::numeric_limits<std::int64_t>::max();
  }
  if (!g_.is_projected()) return;
  const std::int64_t numbers = s.kv_heads * s.head_size * g_.coordinates();
  for (std::int64_t i = 0; i < numbers; ++i) basis_[i] = static_cast<E>(g_.approximation.basis[i]);
}

template class Centres<float>;
template class Centres<double>;

}  // namespace loipe::attention::almost_linear
