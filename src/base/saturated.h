// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>

namespace loipe {

// Sizes that come from outside may exceed all numbers. No memory is as large as the
// largest of them, so that one can stand for all that are larger.

constexpr std::size_t saturated_sum(std::size_t a, std::size_t b) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  return b > kMost - a ? kMost : a + b;
}

constexpr std::size_t saturated_product(std::size_t a, std::size_t b) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  return a != 0 && b > kMost / a ? kMost : a * b;
}

}  // namespace loipe
