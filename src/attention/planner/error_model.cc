// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "attention/planner/planner.h"
#include "attention/polynomial/polynomial.h"

namespace loipe::attention::planner {

namespace {

/// Given q, logits of Gaussian keys are Gaussian with spread in proportion to |q|, whose square is as
/// chi-square with d degrees of freedom. An error that grows as spread^(g + 1) then has the root mean square
/// over rows sqrt(E (chi^2 / d)^(g + 1)) = sqrt(prod_{k <= g} (1 + 2 k / d)) times that of the mean spread.
/// Moments beyond the fifth come from rows so rare that heads of a few thousand tokens do not have them.
double tail_factor(int degree, std::int64_t dimensions) {
  double product = 1;
  const double d = static_cast<double>(std::max<std::int64_t>(dimensions, 1));
  for (int k = 1; k <= std::min(degree, 4); ++k) product *= 1 + 2 * k / d;
  return std::sqrt(product);
}

/// Measured errors of gradients of independent Gaussian heads (d = 8 and 16, spread 0.25 to 1, degree 2 to 6)
/// over what the model says: 0.8 to 1.8 for both kinds of gradient.
constexpr double kGradientFactor = 1.4;

}  // namespace

PredictedError predict_error(std::span<const double> coefficients, double spread, std::int64_t dimensions,
                             almost_linear::Gradient gradient) {
  const int degree = static_cast<int>(coefficients.size()) - 1;
  const double output = polynomial::gaussian_error(coefficients, spread) * tail_factor(degree, dimensions);
  if (gradient == almost_linear::Gradient::paper) return {output, kGradientFactor * output};
  // The consistent gradient weighs pairs with P' where the exact one has exp.
  std::array<double, polynomial::kMaxDegree + 1> derivative{};
  for (std::size_t p = 1; p < coefficients.size(); ++p)
    derivative[p - 1] = static_cast<double>(p) * coefficients[p];
  const auto terms = static_cast<std::size_t>(std::max(degree, 1));
  const double of_derivative = polynomial::gaussian_error(std::span(derivative).first(terms), spread);
  return {output, kGradientFactor * std::max(output, of_derivative * tail_factor(degree - 1, dimensions))};
}

}  // namespace loipe::attention::planner
