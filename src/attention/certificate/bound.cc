// SPDX-License-Identifier: Apache-2.0
#include "attention/certificate/bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/element.h"
#include "attention/exact/packing.h"
#include "attention/polynomial/polynomial.h"

// Names as in docs/theory/attention_error.md.

namespace loipe::attention::certificate {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// What the f64 arithmetic of these formulas may lose, generously.
constexpr double kRounding = 1 + 1e-10;

RigorousBound vacuous(Vacuity vacuity) {
  constexpr Bound kNone{kInfinity, kInfinity};
  return {vacuity, kNone, kNone, kNone, kNone, kInfinity};
}

/// What weights are off by: those of rows (sum tau, each by a factor within rho of 1) and those that stand
/// for derivatives, each by a factor within omega of 1.
struct WeightErrors {
  double tau, rho, omega;
};

WeightErrors weight_errors(const polynomial::RelativeError& e, double eta, bool is_paper) {
  const double low = (1 - e.value) * std::exp(-eta), high = (1 + e.value) * std::exp(eta);
  const double slope_error = is_paper ? e.value : e.derivative;
  const double slope_high = (1 + slope_error) * std::exp(eta);
  const double slope_low = (1 - slope_error) * std::exp(slope_error < 1 ? -eta : eta);
  const double root_low = std::sqrt(low), root_high = std::sqrt(high);
  return {2 * (root_high - root_low) / (root_high + root_low), high / low - 1,
          std::max(slope_high / low - 1, 1 - slope_low / (slope_low < 0 ? low : high))};
}

template <class E>
double row_norm(const Rows<const E>& rows, std::int64_t head, std::int64_t row, std::int64_t columns) {
  double sum = 0;
  for (std::int64_t c = 0; rows && c < columns; ++c) {
    const double x = static_cast<double>(get(rows, head, row, c));
    sum += x * x;
  }
  return std::sqrt(sum);
}

/// Sums over the rows of all readers.
struct Sums {
  const statistics::HeadStatistics& s;
  WeightErrors e;
  double query_rest, key_rest, largest_ratio;  ///< exp(2 B)
  double rows = 0, q_row = 0, q_square = 0, k = 0, k_row = 0, v = 0, v_row = 0;

  /// A query that may look at `keys` keys, with |g| and |dL/dlse|.
  void add(double keys, double g, double l) {
    const double scale = std::abs(s.scale), largest = std::min(1.0, largest_ratio / keys);
    const double of_g = g * s.value_norm;
    // Error of dQ's row.
    const double changed = e.omega * ((1 + e.tau) * of_g + l) + e.tau * of_g;  // sum over keys of |w|
    const double q = scale * (changed * s.key_norm + (of_g + l) * key_rest);
    rows += 1;
    q_row = std::max(q_row, q), q_square += q * q;
    // dV: u g^T, |u|_1 <= tau, |u|_infinity <= rho times the largest weight; dK: w q^T and (f y) rest^T.
    const double u = std::min(e.tau / 2, e.rho * largest);
    v += g * std::sqrt(e.tau * u), v_row += g * u;
    const double w = std::min(changed, largest * (e.omega * (2 * of_g + l) + e.tau * of_g));
    const double fy = std::min(of_g + l, largest * (2 * of_g + l));
    k += scale * (std::sqrt(changed * w) * s.query_norm + std::sqrt((of_g + l) * fy) * query_rest);
    k_row += scale * (w * s.query_norm + fy * query_rest);
  }
};

}  // namespace

double Bound::relative(double approximate_norm) const {
  return frobenius < approximate_norm ? frobenius / (approximate_norm - frobenius) : kInfinity;
}

const char* text_of(Vacuity vacuity) {
  switch (vacuity) {
    case Vacuity::none: return "";
    case Vacuity::not_finite: return "inputs are not finite";
    case Vacuity::not_centred: return "keys are not centred";
    case Vacuity::mask: return "the mask has a window or a bias";
    case Vacuity::range: return "logits may be above 300";
    case Vacuity::polynomial: return "the polynomial may be off by 100 % on the range of the logits";
  }
  return "";
}

template <class E>
RigorousBound rigorous_bound(const Problem<E>& problem, std::int64_t kh, const statistics::HeadStatistics& s,
                             const almost_linear::Approximation& approximation,
                             const Cotangents<E>& cotangents) {
  if (!std::isfinite(s.logit_bound) || !std::isfinite(s.value_norm)) return vacuous(Vacuity::not_finite);
  if (!approximation.is_centred) return vacuous(Vacuity::not_centred);
  if (problem.mask.window > 0 || problem.mask.bias) return vacuous(Vacuity::mask);
  const int terms = approximation.degree + 1;
  const std::span<const double> coefficients(approximation.coefficients + kh * terms,
                                             static_cast<std::size_t>(terms));
  const polynomial::RelativeError error = polynomial::relative_error(coefficients, s.logit_bound);
  if (std::isinf(error.value)) return vacuous(Vacuity::range);
  if (!(error.value < 1)) return vacuous(Vacuity::polynomial);
  const bool is_projected = approximation.rank > 0;
  const double eta = is_projected ? s.projection_bound : 0;
  Sums sums{s, weight_errors(error, eta, approximation.gradient == almost_linear::Gradient::paper),
            is_projected ? s.query_rest : 0, is_projected ? s.key_rest : 0, std::exp(2 * s.logit_bound)};
  const Shape& shape = problem.shape;
  const std::uint8_t* const is_allowed = key_mask_at(problem.mask, kh, 0);
  const auto admits = [&](std::int64_t j) { return is_allowed == nullptr || is_allowed[j] != 0; };
  for (std::int64_t h = kh * shape.readers(); h < (kh + 1) * shape.readers(); ++h) {
    std::int64_t keys = problem.mask.is_causal ? 0 : s.keys;
    for (std::int64_t i = 0; i < shape.queries; ++i) {
      if (problem.mask.is_causal && i < shape.keys && admits(i)) ++keys;
      if (keys == 0) continue;
      const double l = cotangents.lse ? std::abs(static_cast<double>(get(cotangents.lse, h, i, 0))) : 0;
      sums.add(static_cast<double>(keys), row_norm(cotangents.o, h, i, shape.value_size), l);
    }
  }
  const double row = sums.e.tau * s.value_norm;
  const auto bound = [](double of_row, double of_all) {
    return Bound{of_row * kRounding, of_all * kRounding};
  };
  return {Vacuity::none,
          bound(row, row * std::sqrt(sums.rows)),
          bound(sums.q_row, std::sqrt(sums.q_square)),
          bound(std::min(sums.k_row, sums.k), sums.k),
          bound(std::min(sums.v_row, sums.v), sums.v),
          sums.e.tau * kRounding};
}

template RigorousBound rigorous_bound(const Problem<float>&, std::int64_t, const statistics::HeadStatistics&,
                                      const almost_linear::Approximation&, const Cotangents<float>&);
template RigorousBound rigorous_bound(const Problem<double>&, std::int64_t, const statistics::HeadStatistics&,
                                      const almost_linear::Approximation&, const Cotangents<double>&);

}  // namespace loipe::attention::certificate
