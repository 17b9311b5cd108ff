// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "orders/game.h"
#include "orders/search/incumbent.h"

// Dynamic programming over subsets, for scalar graphs, whose positions depend on the set
// of eliminated vertices only.

namespace loipe::search {

/// The vertices left, split into groups that no path joins but through an input or an
/// output. Eliminations in one change no cost in another, so each has its own optimum and
/// the optima add up. Smallest vertex first.
std::vector<std::vector<int>> components(const Game& game);

/// The optimal order of a whole component of at most 24 vertices: 2^n positions.
std::vector<int> optimal_component_order(Game& game, const std::vector<int>& component);

/// A proven lower bound of what the rest of the game costs. The vertices of a component
/// are taken in clusters of at most `cluster_size`. When E of a cluster C are gone, with
/// whatever else, the successors of a vertex v separate it from the outputs and from C \ E,
/// and none of them is in E; so they are at least as many as the smallest such cut in the
/// position where only E is gone. With these costs, the dynamic program over the subsets of
/// C bounds what C costs in any order; bounds of disjoint clusters add up. Where a
/// component fits into one cluster this is its optimum.
std::int64_t cluster_bound(Game& game, int cluster_size, const Incumbent& clock);

}  // namespace loipe::search
