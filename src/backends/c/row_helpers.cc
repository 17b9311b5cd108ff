// SPDX-License-Identifier: Apache-2.0
// What has no loop nest of its own form: sorting a row, solving with a triangle, factorising a matrix.
// Order of operations as in ops/sorting and ops/linear_algebra.
#include "backends/c/helpers.h"

namespace loipe::c {

namespace {

/// Merges ever longer runs: n log n, stable, NaN behind all numbers.
constexpr std::string_view kSort = R"(/* Whether y stands before an x that comes earlier. */
static inline int $P_precedes_$S($T y, $T x, int descending) {
  if ($IS_NAN(y)) return 0;
  if ($IS_NAN(x)) return 1;
  return descending ? y > x : y < x;
}

/* The places of x[0..n-1] in sorted order, stable, NaN last; `merged` has room for n. */
static void $P_sort_$S(const $T* x, int64_t n, int descending, int64_t* places, int64_t* merged) {
  for (int64_t i = 0; i < n; ++i) places[i] = i;
  for (int64_t run = 1; run < n; run *= 2) {
    for (int64_t first = 0; first < n; first += 2 * run) {
      const int64_t middle = first + run < n ? first + run : n, last = middle + run < n ? middle + run : n;
      int64_t i = first, j = middle;
      for (int64_t k = first; k < last; ++k) {
        const int takes_right =
            i == middle || (j < last && $P_precedes_$S(x[places[j]], x[places[i]], descending));
        merged[k] = takes_right ? places[j++] : places[i++];
      }
    }
    for (int64_t i = 0; i < n; ++i) places[i] = merged[i];
  }
}
)";

constexpr std::string_view kSolve = R"(/* op(a) x = b in place of b [n, m], from one triangle of a [n, n]. */
static void $P_solve_$S(const $T* restrict a, $T* restrict x, int64_t n, int64_t m, int lower, int transposed,
    int unit_diagonal) {
  const int from_top = lower != transposed;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = from_top ? step : n - 1 - step;
    for (int64_t k = 0; k < step; ++k) {
      const int64_t j = from_top ? k : n - 1 - k;
      const $T factor = transposed ? a[j * n + i] : a[i * n + j];
      for (int64_t c = 0; c < m; ++c) x[i * m + c] -= factor * x[j * m + c];
    }
    if (unit_diagonal) continue;
    for (int64_t c = 0; c < m; ++c) x[i * m + c] /= a[i * n + i];
  }
}
)";

constexpr std::string_view kCholesky = R"(/* l l^T = (a + a^T)/2, all NaN where that is not positive. */
static void $P_cholesky_$S(const $T* restrict a, $T* restrict l, int64_t n) {
  for (int64_t i = 0; i < n * n; ++i) l[i] = 0;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = j; i < n; ++i) {
      $T rest = (a[i * n + j] + a[j * n + i]) / 2;
      for (int64_t k = 0; k < j; ++k) rest -= l[i * n + k] * l[j * n + k];
      if (i == j && !(rest > 0)) {
        for (int64_t k = 0; k < n * n; ++k) l[k] = NAN;
        return;
      }
      l[i * n + j] = i == j ? sqrt$F(rest) : rest / l[j * n + j];
    }
}
)";

}  // namespace

std::span<const Helper> row_helpers() {
  static const std::vector<Helper> helpers{{"sort", kSort}, {"solve", kSolve}, {"cholesky", kCholesky}};
  return helpers;
}

}  // namespace loipe::c
