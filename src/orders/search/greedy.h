// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "base/rng.h"
#include "orders/game.h"

namespace loipe::search {

/// What eliminating a vertex does to the costs of the others, kept up to date along a game.
class LookAhead {
 public:
  explicit LookAhead(Game& game);

  std::int64_t cost(int vertex) const { return costs_[static_cast<std::size_t>(game_.node_of(vertex))]; }
  /// How much the costs of the vertex's neighbours change, all together, if it goes now.
  double change(int vertex);
  /// Applies the move.
  void apply(int vertex);

 private:
  void gather_neighbours(int vertex);

  Game& game_;
  std::vector<std::int64_t> costs_;  ///< by node
  std::vector<int> neighbours_;      ///< vertices
};

struct GreedyOptions {
  double look_ahead = 0.5;  ///< weight of the change beside the cost itself
  double noise = 0;         ///< scores are multiplied by up to 1 + noise
  std::uint64_t seed = 0;
  std::function<bool()> is_out_of_time = {};  ///< asked before every move
};

/// Plays the game from where it stands to its end: always the vertex of the least
/// cost + look_ahead * change, ties to the lowest number. False where time ran out before.
bool play_greedily(Game& game, const GreedyOptions& options);

}  // namespace loipe::search
