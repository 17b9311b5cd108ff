// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "orders/search/edge_chain.h"
#include "orders/search/parallel.h"
#include "orders/search/reduce.h"
#include "orders/search/search.h"

namespace loipe::search {

namespace {

using Kind = EliminationMove::Kind;

/// What one thread does in a second of its share of the budget; see Game::work.
constexpr double kWorkPerSecond = 80e6;
constexpr double kVertexShare = 0.25;

/// The vertices that reductions of vertex elimination leave to the last. That they are safe
/// is proved for orders of vertices only; here they narrow the search.
std::vector<int> reduced_first(const published::Graph& graph, const SearchOptions& options) {
  Game game(graph, options.rules);
  if (options.reduce) eliminate_safe_vertices(game);
  return game.moves();
}

}  // namespace

SearchResult search_moves(const published::Graph& graph, const SearchOptions& options) {
  const double limit = options.time_limit_seconds > 0 ? options.time_limit_seconds : options.budget_seconds;
  SearchOptions of_vertices = options;
  of_vertices.budget_seconds = kVertexShare * options.budget_seconds;
  of_vertices.time_limit_seconds = kVertexShare * limit;
  of_vertices.proves = false;
  SearchResult result = search_order(graph, of_vertices);

  const Game start(graph, options.rules, Game::Moves::vertices_and_edges);
  const std::vector<int> first = reduced_first(graph, options);
  Game game = start;
  for (int vertex : first) game.apply(vertex);
  std::vector<Step> steps;
  for (int vertex : result.order)
    if (game.is_legal(vertex)) steps.push_back({Kind::vertex, game.node_of(vertex)});
  const bool is_scalar = Game(graph, options.rules).is_scalar();
  const double scale = 2 * static_cast<double>(result.cost);
  MovesIncumbent incumbent(limit - result.seconds, options.progress);
  // Long chains find more than many chains do.
  const int chains = options.budget_seconds < 30 ? 2 : 4;
  const double work = (1 - kVertexShare) * options.budget_seconds * kWorkPerSecond / chains;
  run_parallel(chains, thread_count(options.threads), [&](int k) {
    AnnealOptions chain;
    chain.seed = options.seed * 1000003 + 500 + static_cast<std::uint64_t>(k);
    chain.work = static_cast<std::uint64_t>(work);
    chain.first_temperature = scale * .001;
    chain.last_temperature = is_scalar ? scale * .000125 : std::max(scale * 1.5e-6, 0.1);
    chain.rank = k;
    EdgeChain(game, steps, chain).run(incumbent);
  });

  const double before = result.seconds;
  result.lower_bound = {};
  result.seconds += incumbent.seconds();
  for (int vertex : result.order) result.moves.push_back({Kind::vertex, vertex});
  if (incumbent.cost() < result.cost) {
    std::vector<Step> all = steps_of(start, first);
    all.insert(all.end(), incumbent.order().begin(), incumbent.order().end());
    result.moves = moves_of(start, all);
    result.method = "anneal-edges";
  }
  for (const Fall& fall : incumbent.history())
    if (fall.cost < result.cost) result.history.push_back({before + fall.seconds, fall.cost, "anneal-edges"});
  result.cost = std::min(result.cost, incumbent.cost());
  result.order.clear();
  return result;
}

}  // namespace loipe::search
