// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstddef>

#include "attention/polynomial/polynomial.h"
#include "base/check.h"

namespace loipe::attention::polynomial {

namespace {

using Numbers = std::array<double, kMaxDegree + 1>;

int degree_of(std::span<const double> coefficients) {
  require(!coefficients.empty() && coefficients.size() <= kMaxDegree + 1,
          "a polynomial of attention has degree 0 to 12");
  return static_cast<int>(coefficients.size()) - 1;
}

/// P in the basis of He_k(z), x = spread z: x^p = spread^p sum_j p! / (2^j j! (p - 2j)!) He_{p-2j}(z).
Numbers in_hermite_basis(std::span<const double> coefficients, double spread) {
  Numbers result{};
  double factorial = 1, power = 1;  // p!, spread^p
  for (int p = 0; p <= degree_of(coefficients); ++p) {
    if (p > 0) factorial *= p, power *= spread;
    double term = factorial * power * coefficients[static_cast<std::size_t>(p)];
    for (int j = 0; 2 * j <= p; ++j) {
      if (j > 0) term /= 2 * j;
      result[static_cast<std::size_t>(p - 2 * j)] += term / std::tgamma(p - 2 * j + 1);
    }
  }
  return result;
}

}  // namespace

void taylor(std::span<double> coefficients) {
  double term = 1;
  for (int p = 0; p <= degree_of(coefficients); ++p) {
    if (p > 0) term /= p;
    coefficients[static_cast<std::size_t>(p)] = term;
  }
}

// exp(spread z) = exp(spread^2/2) sum_k spread^k/k! He_k(z); cut after k = g and sorted by powers of x:
// a_p = exp(spread^2/2) / p! sum_{j <= (g-p)/2} (-spread^2/2)^j / j!.
void hermite(double spread, std::span<double> coefficients) {
  taylor(coefficients);
  const int degree = degree_of(coefficients);
  const double half_variance = spread * spread / 2;
  for (int p = 0; p <= degree; ++p) {
    double sum = 1, term = 1;
    for (int j = 1; 2 * j <= degree - p; ++j) sum += term *= -half_variance / j;
    coefficients[static_cast<std::size_t>(p)] *= std::exp(half_variance) * sum;
  }
}

double value(std::span<const double> coefficients, double x) {
  double sum = 0;
  for (std::size_t p = coefficients.size(); p-- > 0;) sum = sum * x + coefficients[p];
  return sum;
}

// With b_k, e_k the Hermite coefficients of P and exp(-spread^2/2) exp, and |He_k|^2 = k!, the error of c P
// is c^2 |b|^2 - 2 c <b, e> + |e|^2, at best |e|^2 - <b, e>^2 / |b|^2. That difference would cancel; written
// with the part of e that P lacks, it is tail + |e|^2 - <b, e>^2/|b|^2 over k <= g = tail + |e - <b,e>/|b|^2
// b|^2.
double gaussian_error(std::span<const double> coefficients, double spread) {
  const int degree = degree_of(coefficients);
  const Numbers b = in_hermite_basis(coefficients, spread);
  Numbers e{};
  double bb = 0, be = 0, factorial = 1, power = 1;
  for (int k = 0; k <= degree; ++k) {
    if (k > 0) factorial *= k, power *= spread;
    const auto at = static_cast<std::size_t>(k);
    e[at] = power / factorial;
    bb += b[at] * b[at] * factorial, be += b[at] * e[at] * factorial;
  }
  if (!(bb > 0)) return 1;
  double rest = 0;
  factorial = 1;
  for (int k = 0; k <= degree; ++k) {
    if (k > 0) factorial *= k;
    const double difference = e[static_cast<std::size_t>(k)] - be / bb * b[static_cast<std::size_t>(k)];
    rest += difference * difference * factorial;
  }
  const double floor = gaussian_floor(spread, degree);
  return std::sqrt(rest * std::exp(-spread * spread) + floor * floor);
}

double gaussian_floor(double spread, int degree) {
  const double mean = spread * spread;
  if (!(mean < 700)) return 1;
  double term = std::exp(-mean), head = 0, tail = 0;
  for (int k = 0; k <= degree; ++k) {
    if (k > 0) term *= mean / k;
    head += term;
  }
  // Summed where it is small, so that nothing cancels; terms fall once k > mean.
  for (int k = degree + 1; k < 2000; ++k) {
    term *= mean / k;
    tail += term;
    if (k > mean && term < 1e-18 * tail) break;
  }
  return std::sqrt(head < 0.5 ? 1 - head : tail);
}

}  // namespace loipe::attention::polynomial
