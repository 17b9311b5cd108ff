// SPDX-License-Identifier: Apache-2.0
#include "attention/certificate/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace loipe::attention::certificate {

namespace {

/// What estimated normalisers are off by, besides the scatter of the draws.
constexpr double kColumnBias = 1.1;
constexpr double kQuantile = 1.645;  ///< of the normal distribution, 90 % within

double sum_of(const double* energies, std::int64_t rows) {
  double sum = 0;
  for (std::int64_t i = 0; energies != nullptr && i < rows; ++i) sum += energies[i];
  return sum > 0 && std::isfinite(sum) ? sum : 0;
}

}  // namespace

void draw_rows(const std::array<const double*, kEnergies>& energies, std::int64_t rows, Rng& rng,
               std::span<Draw> draws) {
  std::array<double, kEnergies> factors{};  // of an energy: its share over its sum
  double chance = 1;
  for (std::size_t e = 0; e < kEnergies; ++e) {
    const double sum = sum_of(energies[e], rows);
    if (sum > 0) factors[e] = 1 / sum;
    chance += sum > 0 ? 0 : 1;
  }
  constexpr double kShare = 1.0 / (kEnergies + 1);
  const auto probability = [&](std::int64_t i) {
    double p = chance / static_cast<double>(rows);
    for (std::size_t e = 0; e < kEnergies; ++e)
      if (factors[e] > 0) p += factors[e] * energies[e][i];
    return kShare * p;
  };
  const double parts = static_cast<double>(draws.size()) / 2;
  std::int64_t row = 0;
  double p = probability(0), end = p;  // cumulated up to and with `row`
  for (std::size_t part = 0; part < draws.size() / 2; ++part) {
    double at[2] = {rng.uniform(), rng.uniform()};
    std::sort(at, at + 2);
    for (std::size_t i = 0; i < 2; ++i) {
      const double target = (static_cast<double>(part) + at[i]) / parts;
      while (end < target && row + 1 < rows) end += p = probability(++row);
      draws[2 * part + i] = {row, 1 / (p * static_cast<double>(draws.size()))};
    }
  }
}

// A part's sum is estimated by the mean of its two draws, with 2 weight in place of weight for each; half the
// difference of the two has the variance of the mean as its expected square.
void RatioSums::add(const Draw& a, const Draw& b, double error_a, double error_b, double excess_a,
                    double excess_b) {
  const double error_difference = a.weight * error_a - b.weight * error_b;
  const double excess_difference = a.weight * excess_a - b.weight * excess_b;
  error_ += a.weight * error_a + b.weight * error_b;
  excess_ += a.weight * excess_a + b.weight * excess_b;
  variance_ += error_difference * error_difference;
  covariance_ += error_difference * excess_difference;
  excess_variance_ += excess_difference * excess_difference;
  ++pairs_;
}

Estimate RatioSums::estimate(Kind kind) const {
  Estimate e;
  e.kind = kind;
  if (pairs_ == 0) return {};
  const double exact = known_ + excess_;
  if (std::isnan(error_) || std::isnan(exact)) {
    e.value = e.low = e.high = std::numeric_limits<double>::quiet_NaN();
    return e;
  }
  if (!(error_ > 0)) return e;
  if (!(exact > 0)) {
    e.value = e.low = e.high = std::numeric_limits<double>::infinity();
    return e;
  }
  const double ratio = error_ / exact;
  // Of the linearised ratio: error - ratio * exact.
  const double variance = variance_ - 2 * ratio * covariance_ + ratio * ratio * excess_variance_;
  const double relative = std::sqrt(std::max(variance, 0.0)) / error_;
  // The variance is itself measured, on `pairs` differences of which those in the tail count most: the factor
  // makes the interval cover 90 % on the errors it was tried on. Errors have long tails, so that the
  // logarithm is nearer to normal than the sum.
  const double spread = kQuantile * (1 + 8 / static_cast<double>(pairs_)) * relative / 2;
  e.value = std::sqrt(ratio);
  const double bias = kind == Kind::approximate_columns ? kColumnBias : 1;
  e.low = e.value * std::exp(-spread) / bias, e.high = e.value * std::exp(spread) * bias;
  return e;
}

Estimate estimate_of_square(double square, double deviation, double reference) {
  Estimate e;
  e.kind = Kind::sampled_pairs;
  const auto root = [&](double x) { return x > 0 ? std::sqrt(x / reference) : 0; };
  e.value = root(square);
  e.low = root(square - kQuantile * deviation), e.high = root(square + kQuantile * deviation);
  return e;
}

}  // namespace loipe::attention::certificate
