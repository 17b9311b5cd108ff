// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "orders/game.h"
#include "orders/search/incumbent.h"

namespace loipe::search {

struct LayerOptions {
  std::size_t width = 100;  ///< positions kept per layer
  /// Admissible: what a vertex costs at least, by vertex - 1; empty for zeros.
  std::vector<std::int64_t> least_costs = {};
};

struct LayerResult {
  std::vector<int> order;  ///< of the vertices that were left; empty if none was below the limit
  std::int64_t cost = Game::kTooMuch;
  /// No position was dropped that could have led below the limit: the order is optimal,
  /// or, without one, nothing below the limit exists.
  bool is_exhaustive = true;
};

/// Breadth-first search over positions, layer by layer; of equal positions the cheapest
/// is kept, and what cannot end below `limit` is dropped. With a narrow width this is
/// beam search, ranked by cost so far + half the summed costs of all vertices left (the
/// look-ahead of greedy, summed up); with a width that is never reached it is dynamic
/// programming over positions, hence exact. Stops without a result when time is out.
LayerResult search_layers(Game& game, std::int64_t limit, const LayerOptions& options,
                          const Incumbent& clock);

}  // namespace loipe::search
