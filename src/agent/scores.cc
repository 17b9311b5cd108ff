// SPDX-License-Identifier: Apache-2.0
#include "agent/scores.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>
#include <utility>

namespace loipe::agent {

namespace {

std::size_t at(int node) { return static_cast<std::size_t>(node); }

/// Calls visit with the legal neighbours of a node.
template <typename Visit>
void for_each_legal_neighbour(const Game& game, int node, Visit visit) {
  const auto filtered = [&](int other) {
    if (other >= game.input_count() && game.is_legal(game.vertex_of(other))) visit(other);
  };
  Game::for_each(game.predecessors(node), filtered);
  Game::for_each(game.successors(node), filtered);
}

std::vector<int> legal_neighbours(const Game& game, int node) {
  std::vector<int> nodes;
  for_each_legal_neighbour(game, node, [&](int other) { nodes.push_back(other); });
  return nodes;
}

/// |a and b together| - 1: one of them holds the vertex that goes.
int merged_count(Game::Row a, Game::Row b) {
  int bits = -1;
  for (std::size_t w = 0; w < a.size(); ++w) bits += std::popcount(a[w] | b[w]);
  return bits;
}

}  // namespace

Scores::Scores(Game& game) : costs_(at(game.node_count()), 0), changes_(at(game.node_count()), 0.0) {
  const std::vector<int> vertices = game.legal_vertices();
  for (int vertex : vertices) set_cost(game, game.node_of(vertex));
  for (int vertex : vertices)
    changes_[at(game.node_of(vertex))] = computed_change(game, game.node_of(vertex));
}

/// Costs change for the neighbours of the vertex that goes (their edges do, those of others do
/// not). The change that a vertex would cause is a sum over its neighbours u of how the cost
/// of u would change, which depends on the edges of u and on its own: it is other than
/// before only for those neighbours and for theirs.
std::int64_t Scores::apply(Game& game, int vertex) {
  const std::int64_t before = game.total();
  apply(game, vertex, true);
  return game.total() - before;
}

/// Returns the nodes whose score may have changed.
std::vector<int> Scores::apply(Game& game, int vertex, bool is_exact) {
  const int gone = game.node_of(vertex);
  std::vector<int> touched = legal_neighbours(game, gone);
  game.apply(vertex);
  sum_ -= static_cast<double>(costs_[at(gone)]);
  costs_[at(gone)] = 0;
  changes_[at(gone)] = 0;
  const std::size_t neighbours = touched.size();
  for (std::size_t k = 0; k < neighbours; ++k) set_cost(game, touched[k]);
  for (std::size_t k = 0; is_exact && k < neighbours; ++k)
    for_each_legal_neighbour(game, touched[k], [&](int node) { touched.push_back(node); });
  std::ranges::sort(touched);
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  for (int node : touched) changes_[at(node)] = computed_change(game, node);
  return touched;
}

Completions Scores::completions(Game& game) const {
  const std::size_t depth = game.depth();
  const std::int64_t before = game.total();
  Completions result;
  const auto take = [&](std::int64_t& cost) {
    cost = game.total() - before;
    if (result.best.vertices.empty() || cost < result.best.cost) {
      const std::vector<int> moves = game.moves();
      result.best = {cost, {moves.begin() + static_cast<std::ptrdiff_t>(depth), moves.end()}};
    }
    game.undo_to(depth);
  };
  Scores(*this).play_greedily(game);
  take(result.greedy_cost);
  const std::vector<int> left = game.legal_vertices();
  for (auto vertex = left.rbegin(); vertex != left.rend(); ++vertex) game.apply(*vertex);
  take(result.reverse_cost);
  return result;
}

/// Ties go to the lowest number. Entries of the heap that are no longer true are skipped.
void Scores::play_greedily(Game& game) {
  using Entry = std::pair<double, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap;
  for (int vertex : game.legal_vertices())
    heap.emplace(look_ahead(game.node_of(vertex)), game.node_of(vertex));
  while (!heap.empty()) {
    const auto [score, node] = heap.top();
    heap.pop();
    if (!game.is_legal(game.vertex_of(node)) || score != look_ahead(node)) continue;
    for (int touched : apply(game, game.vertex_of(node), game.is_scalar()))
      heap.emplace(look_ahead(touched), touched);
  }
}

void Scores::set_cost(const Game& game, int node) {
  sum_ -= static_cast<double>(costs_[at(node)]);
  costs_[at(node)] = game.cost(game.vertex_of(node));
  sum_ += static_cast<double>(costs_[at(node)]);
}

double Scores::computed_change(Game& game, int node) {
  if (game.is_scalar()) return scalar_change(game, node);
  const std::vector<int> neighbours = legal_neighbours(game, node);
  double change = 0;
  game.apply(game.vertex_of(node));
  for (int other : neighbours) change += static_cast<double>(game.cost(game.vertex_of(other)) - cost(other));
  game.undo();
  return change;
}

/// A successor u of j gets the predecessors of j for j itself, a predecessor its successors.
double Scores::scalar_change(const Game& game, int node) const {
  std::int64_t change = 0;
  const auto add = [&](int other, std::int64_t in, std::int64_t out) { change += in * out - cost(other); };
  const auto is_legal = [&](int other) {
    return other >= game.input_count() && game.is_legal(game.vertex_of(other));
  };
  Game::for_each(game.successors(node), [&](int u) {
    if (!is_legal(u)) return;
    add(u, merged_count(game.predecessors(u), game.predecessors(node)), Game::count(game.successors(u)));
  });
  Game::for_each(game.predecessors(node), [&](int u) {
    if (!is_legal(u)) return;
    add(u, Game::count(game.predecessors(u)), merged_count(game.successors(u), game.successors(node)));
  });
  return static_cast<double>(change);
}

}  // namespace loipe::agent
