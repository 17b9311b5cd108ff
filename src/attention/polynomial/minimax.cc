// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <utility>

#include "attention/polynomial/polynomial.h"
#include "base/check.h"

// x = bound t. The functions T_k(t) exp(-bound t) satisfy Haar's condition, so the best fit of 1 by them is
// the one whose error takes its largest value, with alternating signs, at g + 2 points (Chebyshev). The
// exchange of Remez finds them: fit so that the error alternates at given points, then move these to where it
// is largest between its zeros.

namespace loipe::attention::polynomial {

namespace {

constexpr int kMaxPoints = kMaxDegree + 2;
using Points = std::array<double, kMaxPoints>;

struct Fit {
  int degree;
  double bound;
  Points chebyshev{};  ///< coefficients of T_0 .. T_degree
  double level = 0;    ///< error at the points, with alternating signs

  double error(double t) const {
    double b1 = 0, b2 = 0;
    for (int k = degree; k > 0; --k) b2 = std::exchange(b1, 2 * t * b1 - b2 + chebyshev[std::size_t(k)]);
    return (t * b1 - b2 + chebyshev[0]) * std::exp(-bound * t) - 1;
  }

  /// Solves sum_k c_k T_k(t_i) exp(-bound t_i) + (-1)^i level = 1.
  void solve(const Points& t);
};

void Fit::solve(const Points& t) {
  const auto n = static_cast<std::size_t>(degree) + 2;
  std::array<std::array<double, kMaxPoints + 1>, kMaxPoints> m{};
  for (std::size_t i = 0; i < n; ++i) {
    // Rows are scaled by exp(min(0, bound t)), so that none is larger than 1.
    const double weight = std::exp(-std::max(0.0, bound * t[i])),
                 scale = std::exp(std::min(0.0, bound * t[i]));
    double t0 = 1, t1 = t[i];
    for (std::size_t k = 0; k + 1 < n; ++k) {
      m[i][k] = t0 * weight;
      t0 = std::exchange(t1, 2 * t[i] * t1 - t0);
    }
    m[i][n - 1] = (i % 2 == 0 ? 1 : -1) * scale;
    m[i][n] = scale;
  }
  for (std::size_t c = 0; c < n; ++c) {
    std::size_t pivot = c;
    for (std::size_t r = c + 1; r < n; ++r)
      if (std::abs(m[r][c]) > std::abs(m[pivot][c])) pivot = r;
    std::swap(m[c], m[pivot]);
    for (std::size_t r = c + 1; r < n; ++r) {
      const double factor = m[r][c] / m[c][c];
      for (std::size_t k = c; k <= n; ++k) m[r][k] -= factor * m[c][k];
    }
  }
  Points solution{};
  for (std::size_t c = n; c-- > 0;) {
    double sum = m[c][n];
    for (std::size_t k = c + 1; k < n; ++k) sum -= m[c][k] * solution[k];
    solution[c] = sum / m[c][c];
  }
  level = std::abs(solution[n - 1]);
  chebyshev = solution;
}

/// The largest |error| in [low, high], by golden section from the best of a few points.
double peak(const Fit& fit, double low, double high) {
  constexpr int kSteps = 16;
  int best = 0;
  for (int i = 1; i <= kSteps; ++i)
    if (std::abs(fit.error(low + (high - low) * i / kSteps)) >
        std::abs(fit.error(low + (high - low) * best / kSteps)))
      best = i;
  double a = low + (high - low) * std::max(best - 1, 0) / kSteps;
  double b = low + (high - low) * std::min(best + 1, kSteps) / kSteps;
  constexpr double kGolden = 0.6180339887498949;
  for (int i = 0; i < 40; ++i) {
    const double c = b - kGolden * (b - a), d = a + kGolden * (b - a);
    if (std::abs(fit.error(c)) > std::abs(fit.error(d))) b = d;
    else a = c;
  }
  // Ends are compared too: at them the error is often largest without a derivative of 0.
  double at = (a + b) / 2;
  for (const double end : {low, high})
    if (std::abs(fit.error(end)) >= std::abs(fit.error(at))) at = end;
  return at;
}

double zero_between(const Fit& fit, double a, double b) {
  const bool is_positive = fit.error(a) > 0;
  for (int i = 0; i < 60; ++i) {
    const double middle = (a + b) / 2;
    ((fit.error(middle) > 0) == is_positive ? a : b) = middle;
  }
  return (a + b) / 2;
}

/// Moves each point to the peak between the zeros around it; returns the largest error.
double move_points(const Fit& fit, Points& t) {
  const auto n = static_cast<std::size_t>(fit.degree) + 2;
  Points zeros{};
  for (std::size_t i = 0; i + 1 < n; ++i) zeros[i] = zero_between(fit, t[i], t[i + 1]);
  double largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    t[i] = peak(fit, i == 0 ? -1 : zeros[i - 1], i + 1 == n ? 1 : zeros[i]);
    largest = std::max(largest, std::abs(fit.error(t[i])));
  }
  return largest;
}

/// From T_k(x / bound) to powers of x.
void to_powers(const Fit& fit, std::span<double> coefficients) {
  std::array<double, kMaxDegree + 1> t0{1}, t1{0, 1}, sum{};
  for (int k = 0; k <= fit.degree; ++k) {
    for (int p = 0; p <= k; ++p) sum[std::size_t(p)] += fit.chebyshev[std::size_t(k)] * t0[std::size_t(p)];
    std::array<double, kMaxDegree + 1> next{};
    for (int p = 0; p <= kMaxDegree; ++p)
      next[std::size_t(p)] = (p > 0 ? 2 * t1[std::size_t(p - 1)] : 0) - t0[std::size_t(p)];
    t0 = std::exchange(t1, next);
  }
  double power = 1;
  for (std::size_t p = 0; p < coefficients.size(); ++p, power *= fit.bound) coefficients[p] = sum[p] / power;
}

}  // namespace

void minimax(double bound, std::span<double> coefficients) {
  taylor(coefficients);  // also checks the degree
  require(bound >= 0 && bound <= kLargestBound, "the range of a minimax polynomial is too large");
  if (bound < 1e-3) return;  // the difference to Taylor is below 1e-3 of the error there
  Fit fit{static_cast<int>(coefficients.size()) - 1, bound}, best = fit;
  double best_error = std::numeric_limits<double>::infinity();
  Points t{};
  for (int i = 0; i <= fit.degree + 1; ++i)
    t[std::size_t(i)] = -std::cos(std::numbers::pi * i / (fit.degree + 1));
  for (int round = 0; round < 60; ++round) {
    fit.solve(t);
    const double largest = move_points(fit, t);
    if (largest < best_error) best = fit, best_error = largest;
    // At the rounding of f64 the error no longer alternates, and there is nothing left to gain.
    if (largest <= fit.level * (1 + 1e-6) || largest < 1e-14) break;
  }
  to_powers(best, coefficients);
}

}  // namespace loipe::attention::polynomial
