// SPDX-License-Identifier: Apache-2.0
#include "attention/almost_linear/monomial_table.h"

#include <limits>
#include <numeric>

#include "attention/almost_linear/almost_linear.h"

namespace loipe::attention::almost_linear {

std::int64_t feature_count(std::int64_t size, int degree) {
  std::int64_t count = 1;
  for (int p = 1; p <= degree; ++p) {
    const std::int64_t divisor = std::gcd(count, std::int64_t{p});
    if (__builtin_mul_overflow(count / divisor, (size + p) / (p / divisor), &count))
      return std::numeric_limits<std::int64_t>::max();
  }
  return count;
}

template <class T>
MonomialTable<T>::MonomialTable(std::int64_t size, int degree, Arena& arena)
    : monomials_{degree, size, nullptr, nullptr, nullptr},
      count_(feature_count(size, degree)),
      low_(degree > 0 ? feature_count(size, degree - 1) : 1),
      starts_(arena.take<std::ptrdiff_t>((degree + 1) * (size + 1))),
      coordinates_(arena.take<std::int32_t>(count_)),
      parents_(arena.take<std::int32_t>(count_)),
      multiplicities_(arena.take<T>(count_)),
      powers_(arena.take<std::uint8_t>(count_)) {
  monomials_.starts = starts_, monomials_.coordinates = coordinates_, monomials_.parents = parents_;
}

template <class T>
void MonomialTable<T>::fill() {
  const std::int64_t size = monomials_.size;
  for (std::int64_t j = 0; j <= size; ++j) starts_[j] = j < size ? 0 : 1;
  multiplicities_[0] = 1, powers_[0] = 0, coordinates_[0] = parents_[0] = 0;
  for (int p = 1; p <= monomials_.degree; ++p) {
    std::ptrdiff_t* const starts = starts_ + p * (size + 1);
    std::int64_t child = monomials_.end(p - 1);
    for (std::int64_t j = 0; j < size; ++j) {
      starts[j] = child;
      for (std::int64_t parent = monomials_.start(p - 1, j); parent < monomials_.end(p - 1); ++parent) {
        // x_j times the parent: beta_j grows by one, and p! / beta! by p / beta_j.
        const bool continues = p > 1 && parent < monomials_.start(p - 1, j + 1);
        powers_[child] = static_cast<std::uint8_t>(continues ? powers_[parent] + 1 : 1);
        multiplicities_[child] = multiplicities_[parent] * static_cast<T>(p) / static_cast<T>(powers_[child]);
        coordinates_[child] = static_cast<std::int32_t>(j);
        parents_[child] = static_cast<std::int32_t>(parent);
        ++child;
      }
    }
    starts[size] = child;
  }
}

template class MonomialTable<float>;
template class MonomialTable<double>;

}  // namespace loipe::attention::almost_linear
