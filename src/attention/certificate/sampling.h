// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/certificate/audit.h"
#include "base/rng.h"

namespace loipe::attention::certificate {

/// A drawn row. For any f, the sum over draws of weight f(row) has the expectation sum over all rows of f.
struct Draw {
  std::int64_t row;
  double weight;
};

/// Draws `draws.size()` rows, an even number. Equal shares of their probability are for chance alone and in
/// proportion to each of some energies [rows]; those that are null or of sum 0 leave theirs to chance. The
/// axis of cumulated probability is cut into draws / 2 equal parts, and each gets two independent draws, (0,
/// 1), (2, 3), ...: as even a cover as leaves the variance measurable.
inline constexpr std::size_t kEnergies = 3;
void draw_rows(const std::array<const double*, kEnergies>& energies, std::int64_t rows, Rng& rng,
               std::span<Draw> draws);

/// A ratio of sums over rows, |error|^2 / |exact|^2, from draws. The numerator is sampled. The denominator is
/// the sum of the approximate result, known, plus the sampled difference to the exact one, which varies
/// little.
class RatioSums {
 public:
  /// A pair of draws of one part: energies of the error, and exact less approximate energies.
  void add(const Draw& a, const Draw& b, double error_a, double error_b, double excess_a, double excess_b);
  void add_known(double approximate_energy) { known_ += approximate_energy; }
  Estimate estimate(Kind kind) const;

 private:
  double error_ = 0, excess_ = 0, known_ = 0;
  double variance_ = 0, covariance_ = 0, excess_variance_ = 0;
  std::int64_t pairs_ = 0;
};

/// sqrt(square / reference), with the interval of a square of given standard deviation.
Estimate estimate_of_square(double square, double deviation, double reference);

}  // namespace loipe::attention::certificate
