// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "attention/polynomial/polynomial.h"

// Bounds over an interval come from bounds over cells of it. On a cell |x - m| <= h, P is written in powers
// of x - m: what it does there is then bounded by absolute values of coefficients, with no sampling.

namespace loipe::attention::polynomial {

namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

/// P around m: sum_k c[k] (x - m)^k, each c[k] off by at most `rounding` in the sense of sum |off| h^k.
struct Cell {
  std::array<double, kMaxDegree + 3> c{};  ///< two zeros at the end, for second derivatives
  double rounding = 0;
  int degree = 0;
};

Cell shifted(std::span<const double> coefficients, double middle, double half) {
  Cell cell;
  cell.degree = static_cast<int>(coefficients.size()) - 1;
  double sizes = 0;
  for (std::size_t p = coefficients.size(); p-- > 0;) {
    cell.c[p] = coefficients[p];
    sizes = sizes * (std::abs(middle) + half) + std::abs(coefficients[p]);
  }
  for (int i = 0; i < cell.degree; ++i)  // Horner's scheme, again and again
    for (int p = cell.degree - 1; p >= i; --p) cell.c[std::size_t(p)] += middle * cell.c[std::size_t(p + 1)];
  // Each c[k] is a sum of products of at most 2 g roundings, whose sizes add to `sizes`.
  cell.rounding = (2 * cell.degree + 4) * kEpsilon * sizes;
  return cell;
}

/// Largest |P(x) exp(-x) - 1| on the cell. r = P exp(-x) - 1 has r' = (P' - P) exp(-x) and r'' = (P'' - 2 P'
/// + P) exp(-x), and |r(x)| <= |r(m)| + h |r'(m)| + h^2/2 max |r''|.
double error_on_cell(std::span<const double> coefficients, double middle, double half) {
  const Cell cell = shifted(coefficients, middle, half);
  const double factor = std::exp(-middle);
  double curvature = 0, power = 1;
  for (int k = 0; k <= cell.degree; ++k, power *= half) {
    const auto at = std::size_t(k);
    curvature +=
        std::abs(cell.c[at] - 2 * (k + 1) * cell.c[at + 1] + (k + 1) * (k + 2) * cell.c[at + 2]) * power;
  }
  const double at_middle = std::abs(cell.c[0] * factor - 1), slope = std::abs(cell.c[1] - cell.c[0]) * factor;
  // Of the rounding of c, r(m) has 1 times as much, h r' 1 + h times, h^2/2 r'' h^2/2 + 12 h + 66 times at
  // degree 12: less than 80 together for h < 0.3. exp and the sum have their own.
  const double rounding = 80 * cell.rounding * factor * std::exp(half) + 8 * kEpsilon * (1 + at_middle);
  const double sum = at_middle + half * slope + half * half / 2 * curvature * factor * std::exp(half);
  return (sum + rounding) * (1 + 32 * kEpsilon);
}

double largest_error(std::span<const double> coefficients, double bound) {
  constexpr int kCells = 1024;
  // A little longer, so that the rounding of middles leaves no gap.
  const double step = bound / kCells, half = step * (1 + 1e-11);
  double largest = 0;
  for (int cell = 0; cell < kCells; ++cell)
    largest = std::max(largest, error_on_cell(coefficients, step * (2 * cell + 1) - bound, half));
  return largest;
}

bool is_positive_on(std::span<const double> coefficients, double middle, double half, int depth) {
  const Cell cell = shifted(coefficients, middle, half);
  double low = cell.c[0] - cell.rounding, power = half;
  for (int k = 1; k <= cell.degree; ++k, power *= half) low -= std::abs(cell.c[std::size_t(k)]) * power;
  if (low > 0) return true;
  if (cell.c[0] <= 0 || depth == 0) return false;
  return is_positive_on(coefficients, middle - half / 2, half / 2, depth - 1) &&
         is_positive_on(coefficients, middle + half / 2, half / 2, depth - 1);
}

bool is_range(double bound) { return bound >= 0 && bound <= 300; }

}  // namespace

RelativeError relative_error(std::span<const double> coefficients, double bound) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!is_range(bound)) return {kInfinity, kInfinity};
  std::array<double, kMaxDegree + 1> derivative{};
  for (std::size_t p = 1; p < coefficients.size(); ++p)
    derivative[p - 1] = static_cast<double>(p) * coefficients[p];
  const std::size_t terms = std::max<std::size_t>(coefficients.size() - 1, 1);
  return {largest_error(coefficients, bound), largest_error(std::span(derivative).first(terms), bound)};
}

bool is_positive(std::span<const double> coefficients, double bound) {
  // The rounding of middles and halves is covered by an interval that is a little longer.
  return is_range(bound) && is_positive_on(coefficients, 0, bound * (1 + 1e-12), 16);
}

}  // namespace loipe::attention::polynomial
