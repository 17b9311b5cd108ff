// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "orders/game.h"

namespace loipe::search {

/// Minimum vertex cuts in the position of a game, by disjoint paths (Menger): as many
/// paths as possible from a vertex to the targets that share no node but the first.
class VertexCut {
 public:
  enum class Direction : std::uint8_t { to_outputs, to_inputs };

  explicit VertexCut(const Game& game);

  /// The fewest nodes, `vertex` not among them, that meet every path from it to an
  /// output (or back to an input) or to a node of `more_targets`. A target may itself
  /// be one of the nodes.
  int of(int vertex, Direction direction, const std::vector<char>& more_targets);
  int of(int vertex, Direction direction) { return of(vertex, direction, no_targets_); }

  /// From now on, paths leave their vertex by such edges only.
  void first_edges(std::function<bool(int source, int destination)> are_allowed) {
    is_first_ = std::move(are_allowed);
  }

 private:
  /// A node stands twice in the flow network: where paths enter and where they leave.
  struct Place {
    int node;
    bool leaves;
  };
  bool augment(int source, Direction direction, const std::vector<char>& more_targets);
  void visit(int node, bool leaves, Place from);
  void follow_back(Place last, int source);
  bool is_target(int node, Direction direction, const std::vector<char>& more_targets) const;

  bool may_follow(int here, int other, int source, Direction direction) const {
    if (!is_first_ || here != source) return true;
    return direction == Direction::to_outputs ? is_first_(here, other) : is_first_(other, here);
  }

  const Game& game_;
  std::function<bool(int, int)> is_first_;
  std::vector<char> no_targets_;
  std::vector<int> next_, previous_;  ///< along the paths; -1 off them
  std::vector<Place> queue_;
  std::vector<Place> parents_;  ///< [2 * node + leaves]
  std::vector<int> seen_;       ///< the round of the last visit
  int round_ = 0;
};

/// cut(inputs, j) * cut(j, outputs): no order eliminates j for less, because at any
/// time the predecessors of j separate it from the inputs, its successors from the
/// outputs.
std::int64_t least_cost(VertexCut& cuts, int vertex);

}  // namespace loipe::search
