// SPDX-License-Identifier: Apache-2.0
#include "orders/search/greedy.h"

#include <algorithm>

namespace loipe::search {

namespace {

std::size_t at(int node) { return static_cast<std::size_t>(node); }

}  // namespace

LookAhead::LookAhead(Game& game) : game_(game), costs_(at(game.node_count()), 0) {
  for (int vertex : game.legal_vertices()) costs_[at(game.node_of(vertex))] = game.cost(vertex);
}

void LookAhead::gather_neighbours(int vertex) {
  neighbours_.clear();
  const auto add = [&](int node) {
    const int other = game_.vertex_of(node);
    if (game_.is_legal(other)) neighbours_.push_back(other);
  };
  Game::for_each(game_.predecessors(game_.node_of(vertex)), add);
  Game::for_each(game_.successors(game_.node_of(vertex)), add);
}

double LookAhead::change(int vertex) {
  gather_neighbours(vertex);
  double change = 0;
  game_.apply(vertex);
  for (int other : neighbours_) change += static_cast<double>(game_.cost(other) - cost(other));
  game_.undo();
  return change;
}

void LookAhead::apply(int vertex) {
  gather_neighbours(vertex);
  game_.apply(vertex);
  for (int other : neighbours_) costs_[at(game_.node_of(other))] = game_.cost(other);
}

bool play_greedily(Game& game, const GreedyOptions& options) {
  Rng rng(options.seed);
  LookAhead ahead(game);
  std::vector<int> vertices = game.legal_vertices();
  while (!vertices.empty()) {
    if (options.is_out_of_time && options.is_out_of_time()) return false;
    auto best = vertices.begin();
    double best_score = 0;
    for (auto candidate = vertices.begin(); candidate != vertices.end(); ++candidate) {
      double score = static_cast<double>(ahead.cost(*candidate));
      if (options.look_ahead > 0) score += options.look_ahead * ahead.change(*candidate);
      if (options.noise > 0) score += options.noise * rng.uniform() * std::abs(score);
      if (candidate != vertices.begin() && score >= best_score) continue;
      best = candidate;
      best_score = score;
    }
    ahead.apply(*best);
    vertices.erase(best);
  }
  return true;
}

}  // namespace loipe::search
