// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "attention/certificate/sampled_panels.h"
#include "attention/polynomial/polynomial.h"

namespace loipe::attention::certificate {

/// P, and what stands for P' in the gradient (P' itself or P), as kernels read them.
template <class E>
struct PolynomialWeights {
  static constexpr std::size_t kTerms = polynomial::kMaxDegree + 1;
  std::array<E, kTerms> value{}, slope{};
  int degree;

  PolynomialWeights(const almost_linear::Approximation& p, std::int64_t kh) : degree(p.degree) {
    const double* const from = p.coefficients + kh * (p.degree + 1);
    const bool is_paper = p.gradient == almost_linear::Gradient::paper;
    for (std::size_t power = 0; power <= static_cast<std::size_t>(degree); ++power) {
      value[power] = static_cast<E>(from[power]);
      if (is_paper) slope[power] = value[power];
      else if (power > 0) slope[power - 1] = static_cast<E>(static_cast<double>(power) * from[power]);
    }
  }
};

/// Writes, for each lane, which rows of a block are near its position; false: the window is empty.
template <class E, class Position>
bool set_near(std::int64_t window, std::int64_t lanes, std::int64_t block, const BlockMemory<E>& m,
              Position&& position) {
  if (window <= 0) return false;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const std::int64_t at = position(lane);
    write_range({at - window + 1, at + window - 1}, block, m.near_first[lane], m.near_last[lane]);
  }
  return true;
}

}  // namespace loipe::attention::certificate
