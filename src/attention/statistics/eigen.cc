// SPDX-License-Identifier: Apache-2.0
#include "attention/statistics/eigen.h"

#include <algorithm>
#include <cmath>

namespace loipe::attention::statistics {

namespace {

/// (a, b) becomes (c a - s b, s a + c b), element by element.
void rotate(double* __restrict a, double* __restrict b, std::int64_t count, double c, double s) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = a[i], y = b[i];
    a[i] = c * x - s * y;
    b[i] = s * x + c * y;
  }
}

}  // namespace

void eigenvectors(std::int64_t size, double* m, double* vectors) {
  std::fill(vectors, vectors + size * size, 0.0);
  double diagonal = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    vectors[i * size + i] = 1;
    diagonal += m[i * size + i] * m[i * size + i];
  }
  constexpr int kMostSweeps = 30;
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    double rest = 0;
    for (std::int64_t p = 0; p < size; ++p)
      for (std::int64_t q = p + 1; q < size; ++q) rest += m[p * size + q] * m[p * size + q];
    if (!(rest > 1e-10 * (diagonal + rest))) return;
    for (std::int64_t p = 0; p < size; ++p)
      for (std::int64_t q = p + 1; q < size; ++q) {
        const double pq = m[p * size + q];
        if (pq * pq <= 1e-14 * std::abs(m[p * size + p] * m[q * size + q])) continue;
        // The angle that makes the element (p, q) vanish, the smaller of two: t = tan.
        const double theta = (m[q * size + q] - m[p * size + p]) / (2 * pq);
        const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1), s = t * c;
        rotate(m + p * size, m + q * size, size, c, s);
        for (std::int64_t i = 0; i < size; ++i) {
          double* const row = m + i * size;
          const double x = row[p], y = row[q];
          row[p] = c * x - s * y;
          row[q] = s * x + c * y;
        }
        m[p * size + q] = m[q * size + p] = 0;
        rotate(vectors + p * size, vectors + q * size, size, c, s);
      }
  }
}

}  // namespace loipe::attention::statistics
