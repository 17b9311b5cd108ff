// SPDX-License-Identifier: Apache-2.0
// What the network sees of a position, and the scores that are kept along a game.
#include "agent/observation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "agent/training_graphs.h"

namespace loipe::agent {
namespace {

template <typename Check>
void on_graphs(Check check) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    check(rng, seed % 2 == 0 ? random_scalar_graph(rng, 30) : random_tensor_graph(rng, 30));
  }
}

/// The definition: apply, look, undo.
double change_by_trial(Game& game, int vertex) {
  double change = 0;
  std::vector<int> others;
  for (int other : game.legal_vertices())
    if (other != vertex) others.push_back(other);
  for (int other : others) change -= static_cast<double>(game.cost(other));
  game.apply(vertex);
  for (int other : others) change += static_cast<double>(game.cost(other));
  game.undo();
  return change;
}

TEST(Scores, StayRightAlongAGame) {
  on_graphs([](Rng& rng, const published::Graph& graph) {
    Game game(graph);
    Scores scores(game);
    for (std::vector<int> left = game.legal_vertices(); !left.empty(); left = game.legal_vertices()) {
      double sum = 0;
      for (int vertex : left) {
        const int node = game.node_of(vertex);
        ASSERT_EQ(scores.cost(node), game.cost(vertex));
        ASSERT_EQ(scores.change(node), change_by_trial(game, vertex));
        sum += static_cast<double>(game.cost(vertex));
      }
      ASSERT_EQ(scores.sum(), sum);
      scores.apply(game, left[static_cast<std::size_t>(rng.below(static_cast<std::int64_t>(left.size())))]);
    }
    EXPECT_EQ(scores.sum(), 0);
  });
}

std::int64_t greedy_cost_by_definition(Game game) {
  const std::int64_t before = game.total();
  for (std::vector<int> left = game.legal_vertices(); !left.empty(); left = game.legal_vertices()) {
    const Scores scores(game);
    game.apply(*std::ranges::min_element(
        left, {}, [&](int vertex) { return scores.look_ahead(game.node_of(vertex)); }));
  }
  return game.total() - before;
}

TEST(Scores, CompletionsAreGames) {
  on_graphs([](Rng&, const published::Graph& graph) {
    Game game(graph);
    const std::uint64_t hash = game.hash();
    const auto [greedy_cost, reverse_cost, rest] = Scores(game).completions(game);
    EXPECT_EQ(game.hash(), hash);
    EXPECT_EQ(rest.cost, std::min(greedy_cost, reverse_cost));
    if (game.is_scalar()) {
      EXPECT_EQ(greedy_cost, greedy_cost_by_definition(game));
    }
    Game reverse = game;
    for (int vertex : rest.vertices) game.apply(vertex);
    EXPECT_TRUE(game.legal_vertices().empty());
    EXPECT_EQ(game.total(), rest.cost);
    const std::vector<int> vertices = reverse.legal_vertices();
    for (auto vertex = vertices.rbegin(); vertex != vertices.rend(); ++vertex) reverse.apply(*vertex);
    EXPECT_EQ(reverse_cost, reverse.total());
  });
}

TEST(Observation, HasEveryNodeAndEdgeOfThePosition) {
  on_graphs([](Rng& rng, const published::Graph& graph) {
    Game game(graph);
    for (int k = 0; k < 10; ++k) {
      const std::vector<int> left = game.legal_vertices();
      if (left.size() < 2) break;
      game.apply(left[static_cast<std::size_t>(rng.below(static_cast<std::int64_t>(left.size())))]);
    }
    const Observation observation = observe(game, Scores(game), {100, 0.5});
    std::multiset<int> seen;
    for (int vertex : observation.vertices)
      if (vertex > 0) seen.insert(vertex);
    const std::vector<int> legal = game.legal_vertices();
    EXPECT_EQ(std::vector<int>(seen.begin(), seen.end()), legal);
    std::size_t edges = 0;
    for (int node = 0; node < game.node_count(); ++node) {
      if (node >= game.input_count() && !game.is_output(node) && !game.is_legal(game.vertex_of(node)))
        continue;
      edges += static_cast<std::size_t>(Game::count(game.predecessors(node)));
    }
    EXPECT_EQ(observation.edges.size(), edges);
  });
}

TEST(Observation, DiffersAfterEveryMove) {
  on_graphs([](Rng&, const published::Graph& graph) {
    Game game(graph);
    const Observation before = observe(game, Scores(game), {100, 0.5});
    for (int vertex : game.legal_vertices()) {
      game.apply(vertex);
      const Observation after = observe(game, Scores(game), {100, 0.5});
      EXPECT_NE(before.vertices, after.vertices);
      game.undo();
    }
  });
}

TEST(Observation, OfALargeGraphIsAWindow) {
  Rng rng(4);
  const published::Graph graph = random_scalar_graph(rng, 600);
  Game game(graph);
  const Scores scores(game);
  const Observation observation = observe(game, scores, {100, 0.5});
  EXPECT_EQ(observation.tokens(), kMostTokens);
  int best = 0;
  for (int vertex : game.legal_vertices())
    if (best == 0 || scores.look_ahead(game.node_of(vertex)) < scores.look_ahead(game.node_of(best)))
      best = vertex;
  EXPECT_NE(std::ranges::find(observation.vertices, best), observation.vertices.end());
}

TEST(Values, AreInverse) {
  for (double cost : {0.0, 1.0, 250.0, 1e9})
    EXPECT_NEAR(cost_of_value(value_of_cost(cost, 300), 300), cost, 1e-9 * (1 + cost));
}

}  // namespace
}  // namespace loipe::agent
