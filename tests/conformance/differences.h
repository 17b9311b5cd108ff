// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace loipe::testing {

/// The derivative at x of a curve (a function from one number to several) by
/// central differences with Ridders' extrapolation (Ridders 1982): differences
/// with the steps h, h/s, h/s^2, ... are extrapolated to step 0 by polynomials in
/// h^2, and per result the entry of the tableau that changes least from its
/// neighbours is kept. For smooth curves this is accurate to about 1e-11 of the
/// curve's size. The curve must be smooth between x - step and x + step.
template <class Curve>
std::vector<double> ridders_derivative(const Curve& curve, double x, double step) {
  constexpr std::size_t kRows = 10;
  constexpr double kShrink = 1.6;
  const auto difference = [&](double h) {
    std::vector<double> up = curve(x + h);
    const std::vector<double> down = curve(x - h);
    for (std::size_t i = 0; i < up.size(); ++i) up[i] = (up[i] - down[i]) / (2 * h);
    return up;
  };
  std::vector<std::vector<double>> previous{difference(step)};
  std::vector<double> best = previous[0];
  std::vector<double> best_error(best.size(), std::numeric_limits<double>::infinity());
  for (std::size_t row = 1; row < kRows; ++row) {
    step /= kShrink;
    std::vector<std::vector<double>> current{difference(step)};
    double factor = 1;
    for (std::size_t column = 1; column <= row; ++column) {
      factor *= kShrink * kShrink;
      std::vector<double> extrapolated = current[column - 1];
      for (std::size_t i = 0; i < best.size(); ++i) {
        const double finer = current[column - 1][i], coarser = previous[column - 1][i];
        extrapolated[i] = (factor * finer - coarser) / (factor - 1);
        const double error = std::max(std::abs(extrapolated[i] - finer), std::abs(extrapolated[i] - coarser));
        if (error < best_error[i]) {
          best_error[i] = error;
          best[i] = extrapolated[i];
        }
      }
      current.push_back(std::move(extrapolated));
    }
    previous = std::move(current);
  }
  return best;
}

}  // namespace loipe::testing
