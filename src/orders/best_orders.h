// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace loipe {

/// An order that search found for a built-in function.
struct BestOrder {
  std::string_view task;
  std::string_view objective;  ///< the cost that it lowers
  std::int64_t scale, batch;   ///< where it was searched
  std::int64_t cost;           ///< there
  std::vector<int> vertices;
};

std::span<const BestOrder> best_orders();

/// The shipped order for that cost, searched at scale 1, or, for a scale above 1, at a
/// large one; null when there is none.
const BestOrder* best_order(std::string_view task, std::string_view objective, std::int64_t scale);

}  // namespace loipe
