// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

// Polynomials that stand for exp in attention: how to choose their coefficients, and how far from exp they
// are at most. A polynomial of degree g is its coefficients a[g + 1], P(x) = sum_p a[p] x^p, g <= kMaxDegree.
// Derivations: docs/theory/attention_error.md.

namespace loipe::attention::polynomial {

inline constexpr int kMaxDegree = 12;

/// a[p] = 1 / p!.
void taylor(std::span<double> coefficients);

/// The least squares fit of exp over x ~ N(0, spread^2). Its common factor exp(spread^2 / 2), which softmax
/// would not need, is kept: P is near exp itself, as it must be beside pairs that have exp.
void hermite(double spread, std::span<double> coefficients);

/// Least largest relative error |P(x) exp(-x) - 1| on [-bound, bound], by Remez exchange; within 1e-6 of the
/// least, or at the rounding of f64. `bound` in [0, kLargestBound]; 0 gives Taylor.
void minimax(double bound, std::span<double> coefficients);
inline constexpr double kLargestBound = 64;

double value(std::span<const double> coefficients, double x);

struct RelativeError {
  double value;       ///< of |P(x) exp(-x) - 1|
  double derivative;  ///< of |P'(x) exp(-x) - 1|
};
/// Bounds, not samples, for all x in [-bound, bound]; rounding of this computation is counted. Infinite where
/// bound is above 300 or not a number.
RelativeError relative_error(std::span<const double> coefficients, double bound);

/// Whether P > 0 on [-bound, bound] is proven. False for a P that touches 0.
bool is_positive(std::span<const double> coefficients, double bound);

/// sqrt(E (c P(x) - exp(x))^2 / E exp(2x)) for x ~ N(0, spread^2), with the factor c that makes it least:
/// what softmax sees of P on Gaussian logits.
double gaussian_error(std::span<const double> coefficients, double spread);

/// The least `gaussian_error` of any polynomial of that degree, which `hermite` has: sqrt(P[N > degree]) for
/// N of Poisson's distribution with mean spread^2.
double gaussian_floor(double spread, int degree);

}  // namespace loipe::attention::polynomial
