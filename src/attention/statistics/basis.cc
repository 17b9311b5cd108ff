// SPDX-License-Identifier: Apache-2.0
#include "attention/statistics/basis.h"

#include <algorithm>
#include <cmath>

#include "attention/statistics/eigen.h"

namespace loipe::attention::statistics {

namespace {

/// out = a b, all [n][n].
void multiply(std::int64_t n, const double* a, const double* b, double* __restrict out) {
  std::fill(out, out + n * n, 0.0);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t l = 0; l < n; ++l) {
      const double a_il = a[i * n + l];
      for (std::int64_t j = 0; j < n; ++j) out[i * n + j] += a_il * b[l * n + j];
    }
}

void transpose(std::int64_t n, double* m) {
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = i + 1; j < n; ++j) std::swap(m[i * n + j], m[j * n + i]);
}

/// out = v m v^T, with rows of v the new axes; `scratch` is another matrix.
void to_axes(std::int64_t n, double* v, const double* m, double* scratch, double* out) {
  multiply(n, v, m, scratch);
  transpose(n, v);
  multiply(n, scratch, v, out);
  transpose(n, v);
}

/// Sorts rows of vectors, those with the largest product of variances first, and the axes of q and k alike.
void sort_axes(std::int64_t n, const BasisMemory& m) {
  const auto product = [&](std::int64_t i) { return m.q[i * n + i] * m.k[i * n + i]; };
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t best = i;
    for (std::int64_t j = i + 1; j < n; ++j)
      if (product(j) > product(best)) best = j;
    if (best == i) continue;
    std::swap_ranges(m.vectors + i * n, m.vectors + (i + 1) * n, m.vectors + best * n);
    for (double* matrix : {m.q, m.k}) {
      std::swap_ranges(matrix + i * n, matrix + (i + 1) * n, matrix + best * n);
      for (std::int64_t row = 0; row < n; ++row) std::swap(matrix[row * n + i], matrix[row * n + best]);
    }
  }
}

double trace(std::int64_t n, const double* matrix) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += matrix[i * n + i];
  return sum;
}

/// The least r whose rest tr(R q R k) = sum over a, b >= r of q_ab k_ab is small enough, and the rests tr(R
/// q) and tr(R k) too: logits do not see a part of the keys that no query has, but derivatives by the queries
/// do.
Rank rank_of(std::int64_t n, const BasisMemory& m, double total, double energy) {
  const double may_lose = 1 - energy, all_q = trace(n, m.q), all_k = trace(n, m.k);
  double lost = 0, lost_q = 0, lost_k = 0;
  for (std::int64_t r = n; r-- > 0;) {
    double more = m.q[r * n + r] * m.k[r * n + r];
    for (std::int64_t b = r + 1; b < n; ++b) more += 2 * m.q[r * n + b] * m.k[r * n + b];
    lost_q += m.q[r * n + r], lost_k += m.k[r * n + r];
    if (lost + more > may_lose * total || lost_q > may_lose * all_q || lost_k > may_lose * all_k)
      return {r + 1, std::max(lost, 0.0) / total};
    lost += more;
  }
  return {0, 1};
}

void set_axes(std::int64_t n, double* basis) {
  std::fill(basis, basis + n * n, 0.0);
  for (std::int64_t i = 0; i < n; ++i) basis[i * n + i] = 1;
}

}  // namespace

BasisMemory::BasisMemory(std::int64_t size, Arena& arena) {
  if (size > kLargestSize) size = 0;
  for (double** at : {&matrix, &vectors, &q, &k, &product}) *at = arena.take<double>(size * size);
}

Rank choose_basis(std::int64_t n, const double* q, const double* k, double energy, const BasisMemory& m,
                  double* basis) {
  set_axes(n, basis);
  double total = 0;
  for (std::int64_t i = 0; i < n * n; ++i) total += q[i] * k[i];
  if (n > kLargestSize || !std::isfinite(total)) return {n, 0};
  if (!(total > 0)) return {0, 0};
  Rank best{n + 1, 0};
  for (int candidate = 0; candidate < 3; ++candidate) {
    // If q or k has low rank r, their product has rank 2 r at most: where it has more, there is nothing to
    // find.
    if (candidate > 0 && 4 * best.rank > 3 * n) break;
    if (candidate == 0) {
      multiply(n, q, k, m.product);
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j)
          m.matrix[i * n + j] = (m.product[i * n + j] + m.product[j * n + i]) / 2;
    } else {
      std::copy_n(candidate == 1 ? q : k, n * n, m.matrix);
    }
    eigenvectors(n, m.matrix, m.vectors);
    to_axes(n, m.vectors, q, m.product, m.q);
    to_axes(n, m.vectors, k, m.product, m.k);
    sort_axes(n, m);
    const Rank rank = rank_of(n, m, total, energy);
    if (rank.rank > best.rank || (rank.rank == best.rank && rank.lost_energy >= best.lost_energy)) continue;
    best = rank;
    std::copy_n(m.vectors, n * n, basis);
    transpose(n, basis);
  }
  return best;
}

}  // namespace loipe::attention::statistics
