// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "agent/tree.h"

namespace loipe::agent {

/// A game to be played from its beginning.
struct GameSpec {
  const published::Graph* graph;
  std::uint64_t seed = 0;
};

struct PlayOptions {
  SearchEffort effort = {};
  published::RuleSet rules = published::RuleSet::published;
  /// Safe eliminations are made first and again after every move; they are no choices.
  bool reduce = true;
  bool keep_examples = false;
  /// Asked before each move: whether to stop where the games are.
  std::function<bool()> is_stopped = {};
};

struct PlayedGame {
  std::vector<int> order;  ///< all moves; shorter than the game where it was stopped
  std::int64_t cost = 0;
  bool is_finished = false;
  Completion best;                   ///< the game itself, or a cheaper one that search met on the way
  std::int64_t moves = 0;            ///< choices among several vertices
  std::int64_t simulated_moves = 0;  ///< inside of trees
  std::vector<Example> examples;     ///< one per choice
};

/// Plays games together, so that the network sees many positions at a time. The result
/// depends on the specs and the options alone.
std::vector<PlayedGame> play_games(const Network& network, std::span<const Tensor> weights,
                                   std::span<const GameSpec> specs, const PlayOptions& options);

}  // namespace loipe::agent
