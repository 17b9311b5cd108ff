// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "base/rng.h"
#include "orders/game.h"
#include "orders/order.h"
#include "orders/search/incumbent.h"

namespace loipe::search {

/// One elimination in a game with edges; nodes of the game.
struct Step {
  EliminationMove::Kind kind = EliminationMove::Kind::vertex;
  int source = 0;       ///< of the edge, or the vertex
  int destination = 0;  ///< of the edge
};

using MovesIncumbent = BasicIncumbent<Step>;

std::vector<Step> steps_of(const Game& game, const std::vector<int>& vertices);

/// Does nothing where the edge is not there; returns the cost.
std::int64_t play(Game& game, const Step& step);

/// As order files name them, without those whose edge is not there when their turn comes.
std::vector<EliminationMove> moves_of(Game game, const std::vector<Step>& steps);

/// A random edge into or out of a vertex of the game that has both; nothing if it has one
/// path alone, or if the edge drawn ends in a copy, which is outside the numbering.
std::optional<Step> random_edge(const Game& game, int node, Rng& rng);

}  // namespace loipe::search
