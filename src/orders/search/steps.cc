// SPDX-License-Identifier: Apache-2.0
#include "orders/search/steps.h"

namespace loipe::search {

namespace {

using Kind = EliminationMove::Kind;

/// Inputs by minus their positions.
int name_of(const Game& game, int node) { return node < game.input_count() ? -node : game.vertex_of(node); }

}  // namespace

std::vector<Step> steps_of(const Game& game, const std::vector<int>& vertices) {
  std::vector<Step> steps;
  for (int vertex : vertices) steps.push_back({Kind::vertex, game.node_of(vertex)});
  return steps;
}

std::int64_t play(Game& game, const Step& step) {
  if (step.kind == Kind::vertex) return game.apply(game.vertex_of(step.source));
  return game.apply_edge(step.source, step.destination, step.kind == Kind::front);
}

std::vector<EliminationMove> moves_of(Game game, const std::vector<Step>& steps) {
  std::vector<EliminationMove> moves;
  for (const Step& step : steps) {
    const bool is_vertex = step.kind == Kind::vertex;
    const bool is_idle =
        !is_vertex && game.edge(step.source, step.destination).type == published::EdgeType::none;
    if (is_vertex) moves.push_back({Kind::vertex, game.vertex_of(step.source)});
    else if (!is_idle)
      moves.push_back({step.kind, name_of(game, step.source), name_of(game, step.destination)});
    play(game, step);
  }
  return moves;
}

std::optional<Step> random_edge(const Game& game, int node, Rng& rng) {
  const int before = Game::count(game.predecessors(node)), after = Game::count(game.successors(node));
  if (before * after < 2) return {};
  const bool is_in_front = rng.chance(0.5);
  std::int64_t left = rng.below(is_in_front ? before : after);
  int other = -1;
  Game::for_each(is_in_front ? game.predecessors(node) : game.successors(node), [&](int candidate) {
    if (left-- == 0) other = candidate;
  });
  if (!is_in_front && game.is_copy(other)) return {};
  return is_in_front ? Step{Kind::front, other, node} : Step{Kind::back, node, other};
}

}  // namespace loipe::search
