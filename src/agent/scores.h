// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "orders/game.h"

namespace loipe::agent {

/// Moves that end the game, and what they pay together.
struct Completion {
  std::int64_t cost = 0;
  std::vector<int> vertices;
};

/// Two ways to end a game from where it stands.
struct Completions {
  std::int64_t greedy_cost = 0, reverse_cost = 0;
  Completion best;  ///< the cheaper one
};

/// What eliminating each legal vertex costs now, and how much that changes the summed costs of
/// its neighbours. Kept along a game: a move touches its neighbours' costs and the changes
/// of their neighbours, so that a move in a large graph costs what it costs in a small one.
class Scores {
 public:
  explicit Scores(Game& game);

  /// Applies a legal move to the game that the scores belong to; returns its cost.
  std::int64_t apply(Game& game, int vertex);

  /// The rest of the game by look-ahead greedy and by reverse order. The game is as before. On
  /// graphs that are not scalar, greedy does not bring up to date on the way what vertices
  /// two edges away would change, which would take most of the time.
  Completions completions(Game& game) const;

  std::int64_t cost(int node) const { return costs_[static_cast<std::size_t>(node)]; }
  double change(int node) const { return changes_[static_cast<std::size_t>(node)]; }
  /// The score of look-ahead greedy: cost + change / 2.
  double look_ahead(int node) const { return static_cast<double>(cost(node)) + change(node) / 2; }
  /// Of the costs of all legal vertices.
  double sum() const { return sum_; }

 private:
  std::vector<int> apply(Game& game, int vertex, bool is_exact);
  void play_greedily(Game& game);
  void set_cost(const Game& game, int node);
  double computed_change(Game& game, int node);
  double scalar_change(const Game& game, int node) const;

  std::vector<std::int64_t> costs_;  ///< by node; 0 where it is not legal
  std::vector<double> changes_;      ///< by node
  double sum_ = 0;
};

}  // namespace loipe::agent
