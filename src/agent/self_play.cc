// SPDX-License-Identifier: Apache-2.0
#include "agent/self_play.h"

#include <algorithm>
#include <memory>

#include "orders/search/reduce.h"

namespace loipe::agent {

namespace {

/// The policy alone plays so many vertices, no two of them neighbours, after one look at a
/// position that is larger than the window: eliminating one leaves the features of the
/// others as they were.
constexpr int kMovesPerLook = 8;
/// Above, looking for safe eliminations after each move would take longer than the rest.
constexpr std::size_t kMostReducedAgain = 160;

/// One game and the search for its next move.
class Table {
 public:
  Table(const GameSpec& spec, Reference reference, const PlayOptions& options)
      : options_(options), reference_(reference), rng_(spec.seed), game_(*spec.graph, options.rules) {
    if (options.reduce) search::eliminate_safe_vertices(game_);
    scores_ = std::make_unique<Scores>(game_);
    play_forced_moves();
  }

  bool is_over() const { return game_.legal_vertices().empty(); }

  void open() {
    if (!tree_) tree_.emplace(game_, *scores_, reference_, options_.effort, rng_);
  }
  Tree& tree() { return *tree_; }

  void move() {
    if (options_.keep_examples) {
      Example example{tree_->root_observation(), tree_->target_policy(), 0};
      played_.examples.push_back(std::move(example));
      paid_before_.push_back(game_.total());
    }
    ++played_.moves;
    played_.simulated_moves += tree_->simulated_moves();
    const int vertex = tree_->best_vertex();
    take_best();
    scores_->apply(game_, vertex);
    if (play_forced_moves() || !tree_->advance(vertex)) tree_.reset();
  }

  /// The policy alone, on a large position.
  void move_by(const Evaluation& evaluation) {
    const Observation& observation = tree_->root_observation();
    std::vector<std::size_t> tokens;
    for (std::size_t t = 0; t < observation.vertices.size(); ++t)
      if (observation.vertices[t] > 0) tokens.push_back(t);
    std::ranges::sort(tokens, {}, [&](std::size_t t) { return std::pair(-evaluation.logits[t], t); });
    std::vector<int> vertices;
    std::vector<bool> is_touched(static_cast<std::size_t>(game_.node_count()), false);
    for (std::size_t t : tokens) {
      const int node = game_.node_of(observation.vertices[t]);
      if (is_touched[static_cast<std::size_t>(node)]) continue;
      const auto touch = [&](int other) { is_touched[static_cast<std::size_t>(other)] = true; };
      Game::for_each(game_.predecessors(node), touch);
      Game::for_each(game_.successors(node), touch);
      vertices.push_back(observation.vertices[t]);
      if (vertices.size() == kMovesPerLook) break;
    }
    take_best();
    tree_.reset();
    for (int vertex : vertices) scores_->apply(game_, vertex);
    played_.moves += static_cast<std::int64_t>(vertices.size());
    play_forced_moves();
  }

  PlayedGame result() {
    for (std::size_t k = 0; k < played_.examples.size(); ++k)
      played_.examples[k].cost_to_go = static_cast<double>(game_.total() - paid_before_[k]);
    played_.order = game_.moves();
    played_.cost = game_.total();
    played_.is_finished = is_over();
    if (played_.is_finished && (played_.best.vertices.empty() || played_.cost <= played_.best.cost))
      played_.best = {played_.cost, played_.order};
    return std::move(played_);
  }

 private:
  /// Whether there were any.
  bool play_forced_moves() {
    const std::size_t before = game_.depth();
    if (options_.reduce && game_.legal_vertices().size() <= kMostReducedAgain) {
      if (search::eliminate_safe_vertices(game_) > 0) *scores_ = Scores(game_);
    }
    const std::vector<int> left = game_.legal_vertices();
    if (left.size() == 1) scores_->apply(game_, left.front());
    return game_.depth() > before;
  }

  void take_best() {
    const Completion& best = tree_->best_game();
    if (best.vertices.empty()) return;
    if (played_.best.vertices.empty() || best.cost < played_.best.cost) played_.best = best;
  }

  const PlayOptions& options_;
  Reference reference_;
  Rng rng_;
  Game game_;
  std::unique_ptr<Scores> scores_;
  std::optional<Tree> tree_;
  std::vector<std::int64_t> paid_before_;
  PlayedGame played_;
};

/// One move in each of the games.
void move_all(const Network& network, std::span<const Tensor> weights, const std::vector<Table*>& tables,
              const PlayOptions& options) {
  std::vector<const Observation*> observations;
  std::vector<Table*> searching, waiting;
  for (Table* table : tables) {
    table->open();
    if (table->tree().is_evaluated()) {
      table->tree().begin();
      searching.push_back(table);
    } else {
      waiting.push_back(table);
      observations.push_back(&table->tree().root_observation());
    }
  }
  const std::vector<Evaluation> roots = network.evaluate(weights, observations);
  const bool uses_policy_alone = options.effort.simulations == 0 && !options.keep_examples;
  for (std::size_t k = 0; k < waiting.size(); ++k) {
    if (uses_policy_alone && observations[k]->tokens() == kMostTokens) {
      waiting[k]->move_by(roots[k]);
    } else {
      waiting[k]->tree().begin(roots[k]);
      searching.push_back(waiting[k]);
    }
  }
  for (int simulation = 0; simulation < options.effort.simulations; ++simulation) {
    waiting.clear();
    observations.clear();
    for (Table* table : searching) {
      if (const Observation* leaf = table->tree().descend()) {
        waiting.push_back(table);
        observations.push_back(leaf);
      }
    }
    const std::vector<Evaluation> leaves = network.evaluate(weights, observations);
    for (std::size_t k = 0; k < waiting.size(); ++k) waiting[k]->tree().back_up(leaves[k]);
  }
  for (Table* table : searching) table->move();
}

}  // namespace

std::vector<PlayedGame> play_games(const Network& network, std::span<const Tensor> weights,
                                   std::span<const GameSpec> specs, const PlayOptions& options) {
  std::vector<std::unique_ptr<Table>> tables;
  for (const GameSpec& spec : specs)
    tables.push_back(std::make_unique<Table>(spec, network.architecture().reference, options));
  for (;;) {
    std::vector<Table*> running;
    for (const std::unique_ptr<Table>& table : tables)
      if (!table->is_over()) running.push_back(table.get());
    if (running.empty() || (options.is_stopped && options.is_stopped())) break;
    move_all(network, weights, running, options);
  }
  std::vector<PlayedGame> games;
  for (const std::unique_ptr<Table>& table : tables) games.push_back(table->result());
  return games;
}

}  // namespace loipe::agent
