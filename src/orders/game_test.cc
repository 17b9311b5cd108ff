// SPDX-License-Identifier: Apache-2.0
// Law: apply then undo restores the position; rewards add up to the published count.
#include "orders/game.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "orders/moves.h"
#include "orders/published/orders.h"
#include "orders/published/state.h"
#include "orders/published_graph.h"
#include "orders/search/random_graphs.h"
#include "orders/search/steps.h"
#include "tasks/task.h"

namespace loipe {
namespace {

using published::Graph;

Graph graph_of(const Task& task) { return published::build_graph(published::published_spec(task.build({}))); }

std::vector<int> shuffled(std::vector<int> vertices, Rng& rng) {
  for (std::size_t i = vertices.size(); i > 1; --i)
    std::swap(vertices[i - 1], vertices[static_cast<std::size_t>(rng.below(static_cast<std::int64_t>(i)))]);
  return vertices;
}

/// All that can be seen of a position.
struct Position {
  std::vector<published::Edge> edges;
  std::vector<std::int64_t> costs;
  std::vector<int> legal;
  std::int64_t total;
  std::uint64_t hash;

  friend bool operator==(const Position&, const Position&) = default;
};

Position position_of(const Game& game) {
  Position position{{}, {}, game.legal_vertices(), game.total(), game.hash()};
  for (int vertex : position.legal) position.costs.push_back(game.cost(vertex));
  for (int i = 0; i < game.node_count(); ++i)
    for (int k = 0; k < game.node_count(); ++k) position.edges.push_back(game.edge(i, k));
  return position;
}

TEST(Game, CountsLikeThePublishedSimulator) {
  Rng rng(1);
  for (const Task& task : all_tasks()) {
    SCOPED_TRACE(task.name);
    const Graph graph = graph_of(task);
    Game game(graph);
    EXPECT_EQ(game.legal_vertices(), published::eliminable(graph));
    for (int repetition = 0; repetition < 5; ++repetition) {
      const std::vector<int> order = shuffled(game.legal_vertices(), rng);
      published::State state(graph);
      for (int vertex : order) {
        const std::int64_t predicted = game.cost(vertex);
        EXPECT_EQ(game.apply(vertex), predicted);
        EXPECT_EQ(state.eliminate(vertex), predicted);
      }
      EXPECT_EQ(game.total(), published::count(graph, order));
      EXPECT_EQ(game.moves(), order);
      EXPECT_TRUE(game.legal_vertices().empty());
      game.undo_to(0);
    }
  }
}

TEST(Game, UndoRestoresThePosition) {
  Rng rng(2);
  for (const char* name : {"RoeFlux_1d", "BlackScholes_Jacobian", "f", "Encoder", "Hole"}) {
    SCOPED_TRACE(name);
    Game game(graph_of(find_task(name)));
    std::vector<Position> positions{position_of(game)};
    for (int vertex : shuffled(game.legal_vertices(), rng)) {
      game.apply(vertex);
      if (game.depth() % 10 == 0) positions.push_back(position_of(game));
    }
    for (; !positions.empty(); positions.pop_back()) {
      game.undo_to((positions.size() - 1) * 10);
      EXPECT_EQ(position_of(game), positions.back()) << "after " << game.depth() << " moves";
    }
  }
}

TEST(Game, HashKnowsPositionsByTheirEdges) {
  const Graph graph = graph_of(find_task("RoeFlux_1d"));
  Game one(graph), other(graph);
  ASSERT_TRUE(one.is_scalar());
  Rng rng(3);
  const std::vector<int> order = shuffled(one.legal_vertices(), rng);
  std::vector<std::uint64_t> hashes;
  for (int vertex : order) {
    one.apply(vertex);
    hashes.push_back(one.hash());
  }
  for (int vertex : shuffled({order.begin(), order.begin() + 40}, rng)) other.apply(vertex);
  EXPECT_EQ(other.hash(), hashes[39]);
  std::ranges::sort(hashes);
  EXPECT_EQ(std::ranges::adjacent_find(hashes), hashes.end());
}

TEST(Game, PlaysOnAsAScalarGameWhenNoCopyIsLeft) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const Graph graph = search::random_graph(rng, 9, 0.4);
    Game game(graph);
    const std::vector<int> order = shuffled(game.legal_vertices(), rng);
    for (int vertex : order) {
      game.become_scalar();
      game.apply(vertex);
    }
    EXPECT_EQ(game.total(), published::count(graph, order));
  }
}

/// Random moves of a game with edges, until all vertices are gone.
template <typename Visit>
void play_at_random(Game& game, Rng& rng, Visit visit) {
  for (std::vector<int> left = game.legal_vertices(); !left.empty(); left = game.legal_vertices()) {
    const int vertex = left[static_cast<std::size_t>(rng.below(std::ssize(left)))];
    search::Step step{EliminationMove::Kind::vertex, game.node_of(vertex)};
    if (rng.chance(0.6))
      if (const auto edge = search::random_edge(game, game.node_of(vertex), rng)) step = *edge;
    visit(step, play(game, step));
  }
}

TEST(Game, EdgesCountLikeThePublishedSimulator) {
  Rng rng(3);
  for (const char* name : {"RoeFlux_1d", "BlackScholes_Jacobian", "g", "f", "Encoder", "Hole"}) {
    SCOPED_TRACE(name);
    const Graph graph = graph_of(find_task(name));
    const Game start(graph, published::RuleSet::published, Game::Moves::vertices_and_edges);
    Game game = start;
    published::State state(graph);
    std::vector<search::Step> steps;
    int edges = 0;
    const auto simulate = [&](const search::Step& step) {
      if (step.kind == EliminationMove::Kind::vertex) return state.eliminate(game.vertex_of(step.source));
      ++edges;
      return step.kind == EliminationMove::Kind::front
                 ? state.eliminate_front(step.source, game.vertex_of(step.destination))
                 : state.eliminate_back(game.vertex_of(step.source), step.destination);
    };
    play_at_random(game, rng, [&](const search::Step& step, std::int64_t cost) {
      steps.push_back(step);
      EXPECT_EQ(simulate(step), cost);
    });
    EXPECT_GT(edges, 5);
    EXPECT_EQ(count_moves(graph, search::moves_of(start, steps)), game.total());
  }
}

TEST(Game, UndoRestoresEdges) {
  Rng rng(4);
  for (const char* name : {"RoeFlux_1d", "f", "Hole"}) {
    SCOPED_TRACE(name);
    Game game(graph_of(find_task(name)), published::RuleSet::published, Game::Moves::vertices_and_edges);
    std::vector<std::pair<std::size_t, Position>> positions{{0, position_of(game)}};
    play_at_random(game, rng, [&](const search::Step&, std::int64_t) {
      if (game.depth() % 20 == 0) positions.emplace_back(game.depth(), position_of(game));
    });
    for (; !positions.empty(); positions.pop_back()) {
      game.undo_to(positions.back().first);
      EXPECT_EQ(position_of(game), positions.back().second);
    }
  }
}

TEST(Game, VerticesCostTheSameWithEdges) {
  for (const char* name : {"RoeFlux_1d", "g", "Hole"}) {
    const Graph graph = graph_of(find_task(name));
    Game plain(graph), with_edges(graph, published::RuleSet::published, Game::Moves::vertices_and_edges);
    for (int vertex : published::reverse_order(graph))
      EXPECT_EQ(plain.apply(vertex), with_edges.apply(vertex));
  }
}

TEST(Game, EdgesGoWithTheirVertex) {
  const Graph graph = graph_of(find_task("RoeFlux_1d"));
  Game game(graph, published::RuleSet::published, Game::Moves::vertices_and_edges);
  std::vector<std::pair<int, int>> gone;
  for (int vertex : published::reverse_order(graph)) {
    const int node = game.node_of(vertex);
    Game::for_each(game.predecessors(node), [&](int i) { gone.emplace_back(i, node); });
    Game::for_each(game.successors(node), [&](int k) { gone.emplace_back(node, k); });
    game.apply(vertex);
    const Position before = position_of(game);
    for (const auto& [source, destination] : gone)
      for (const bool is_in_front : {true, false})
        EXPECT_EQ(game.apply_edge(source, destination, is_in_front), 0);
    const Position after = position_of(game);
    EXPECT_EQ(after, before);
  }
}

TEST(Moves, WhatTheyLeaveIsNotCounted) {
  const Graph graph = graph_of(find_task("Simple"));
  const EliminationMove one{EliminationMove::Kind::vertex, 1};
  EXPECT_EQ(count_moves(graph, {&one, 1}), std::nullopt);
}

}  // namespace
}  // namespace loipe
