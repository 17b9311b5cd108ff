// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "agent/evaluator.h"
#include "agent/gumbel.h"

namespace loipe::agent {

struct SearchEffort {
  int simulations = 8;  ///< per move; 0: the policy alone
  int considered = 8;   ///< actions at the root that share them
  double noise = 1;     ///< of the root's choice, see RootChoice
};

/// Tree search from one position at a time. The network is asked from outside, so that many
/// games can be evaluated together:
///
///     tree.begin(observation's evaluation)
///     while (!tree.is_done()) if (const Observation* leaf = tree.descend()) tree.back_up(evaluation of leaf)
///
/// The game stands at the root whenever none of these runs.
class Tree {
 public:
  /// `scores` are those of the game where it stands.
  Tree(Game& game, const Scores& scores, Reference reference, SearchEffort effort, Rng& rng);

  const Observation& root_observation() const { return *root_->observation; }
  /// Whether begin needs the root's evaluation; not after advance to a position that was met.
  bool is_evaluated() const { return root_->is_evaluated; }
  void begin(const Evaluation& evaluation);
  void begin();

  bool is_done() const { return choice_->is_done(); }
  /// One simulation: down to a position that is new. Null if the game ended on the way; then
  /// nothing is left to do for this simulation.
  const Observation* descend();
  void back_up(const Evaluation& evaluation);

  /// After the game has made this move and no other: what simulations met below it is kept,
  /// without their counts. False if they never met it; the tree is then of no more use.
  bool advance(int vertex);

  /// The vertex to eliminate, after all simulations (or none).
  int best_vertex() const;
  /// The improved policy, by token of the root's observation.
  std::vector<float> target_policy() const;
  /// The cheapest whole game that a completion has shown so far; without vertices if none has.
  const Completion& best_game() const { return best_game_; }
  /// Moves made by simulations.
  std::int64_t simulated_moves() const { return simulated_moves_; }

 private:
  struct Node {
    explicit Node(const Scores& s) : scores(s) {}
    Scores scores;
    std::unique_ptr<Observation> observation;
    bool is_evaluated = false;
    std::vector<int> vertices;        ///< of the actions
    std::vector<std::size_t> tokens;  ///< of the actions
    std::vector<ActionStatistics> actions;
    std::vector<std::int64_t> costs;  ///< of actions that lead to a child
    std::vector<std::unique_ptr<Node>> children;
    double cost_to_go = 0;
  };
  struct Step {
    Node* node;
    std::size_t action;
  };

  void expand(Node& node, const Evaluation& evaluation) const;
  const Observation* add_child(Node& node, std::size_t action);
  void finish_simulation(double cost_to_go);
  std::unique_ptr<Observation> observe_here(const Scores& scores);
  static void forget_counts(Node& node);

  Game& game_;
  Reference reference_;
  SearchEffort effort_;
  Rng& rng_;
  std::size_t depth_;  ///< of the game at the root
  std::unique_ptr<Node> root_;
  std::optional<RootChoice> choice_;
  std::vector<Step> path_;
  Completion best_game_;
  std::int64_t simulated_moves_ = 0;
};

}  // namespace loipe::agent
