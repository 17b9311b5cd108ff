// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent_file.h"
#include "agent/self_play.h"

namespace loipe::agent {

struct TrainingGraph {
  std::string name;
  published::Graph graph;
};

struct TrainOptions {
  Architecture architecture = {};
  /// How strongly the untrained policy follows look-ahead greedy; 0: from nothing.
  double prior = 4;
  SearchEffort effort = {};
  AdamOptions adam = {};
  int games_per_round = 32;
  int most_vertices = 140;  ///< of random graphs
  bool reduce = true;
  std::uint64_t seed = 0;
  int threads = 0;             ///< 0: all cores; nothing depends on it
  double reuse = 2;            ///< how often a new position is learnt from, on average
  std::size_t replay = 20000;  ///< positions kept
};

/// What a round of training did, and the agent's state after it.
struct RoundReport {
  std::int64_t round = 0, games = 0, moves = 0, simulated_moves = 0;  ///< so far
  double loss = 0;  ///< mean of the round's steps; 0 without steps
  /// Of the best game of each task, as it was played with search; empty for random graphs.
  std::vector<std::int64_t> best_costs = {};
  /// Mean over the round's games of cost / cost of look-ahead greedy, with search.
  double mean_ratio = 0;
  /// The policy without search, one game per graph: costs on the tasks, and the mean of cost / cost
  /// of look-ahead greedy on the tasks or on 24 fixed random graphs that are never trained on.
  std::vector<std::int64_t> policy_costs = {};
  double policy_ratio = 0;
};

/// Self-play on graphs of tasks, or on fresh random ones, and learning from it: rounds of a fixed
/// number of games, each followed by steps of Adam on positions drawn from the replay. The
/// agent after a number of rounds depends on the options alone, not on threads and time.
class Trainer {
 public:
  /// Without graphs: random ones. `agent`: one to go on from.
  Trainer(std::vector<TrainingGraph> graphs, const TrainOptions& options, std::optional<Agent> agent = {});

  /// Plays and learns.
  RoundReport run_round();
  /// Costs of the policy alone; not part of a round, because it takes time.
  void measure_policy(RoundReport& report) const;

  const Agent& agent() const { return agent_; }
  const Network& network() const { return network_; }
  /// The best game of each task so far: its order and cost.
  const std::vector<PlayedGame>& best_games() const { return best_games_; }

 private:
  std::vector<PlayedGame> play(const std::vector<GameSpec>& specs, const PlayOptions& options) const;
  void remember(PlayedGame& game);
  double learn(std::size_t new_positions);
  double step(Rng& rng);

  std::vector<TrainingGraph> graphs_, held_out_;
  TrainOptions options_;
  int threads_;
  Agent agent_;
  Network network_;
  std::deque<std::shared_ptr<const Example>> replay_;
  std::vector<PlayedGame> best_games_;
  std::vector<double> greedy_costs_, held_out_greedy_costs_;
};

/// Of look-ahead greedy, after safe eliminations if `reduce`.
std::int64_t greedy_cost(const published::Graph& graph, bool reduce);

}  // namespace loipe::agent
