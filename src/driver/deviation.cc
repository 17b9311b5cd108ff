// SPDX-License-Identifier: Apache-2.0
#include "driver/deviation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace loipe {

namespace {

/// The largest finite magnitude.
double magnitude(const Tensor& tensor) {
  double largest = 0;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    if (const double x = std::abs(tensor.at(i)); std::isfinite(x)) largest = std::max(largest, x);
  return largest;
}

/// Infinite where only one is NaN, or where they differ and one is infinite.
double difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double result = std::abs(a - b);
  return std::isnan(result) ? std::numeric_limits<double>::infinity() : result;
}

}  // namespace

double max_relative_error(std::span<const Tensor> results, std::span<const Tensor> reference,
                          std::size_t first_block, double negligible) {
  require(results.size() == reference.size(), "results and reference differ in number");
  double largest = 0;
  for (std::size_t i = first_block; i < reference.size(); ++i)
    largest = std::max(largest, magnitude(reference[i]));
  double worst = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    require(results[i].shape() == reference[i].shape(), "a result and its reference differ in shape");
    const double floor = i < first_block ? 0 : negligible * largest;
    const double unit = std::max({magnitude(reference[i]), floor, std::numeric_limits<double>::min()});
    for (std::int64_t k = 0; k < results[i].element_count(); ++k)
      worst = std::max(worst, difference(results[i].at(k), reference[i].at(k)) / unit);
  }
  return worst;
}

}  // namespace loipe
