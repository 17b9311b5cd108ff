// SPDX-License-Identifier: Apache-2.0
#include "agent/player.h"

#include <algorithm>
#include <optional>

#include "base/parallel.h"
#include "orders/published/markowitz.h"
#include "orders/published/orders.h"
#include "orders/search/incumbent.h"
#include "orders/search/reduce.h"
#include "orders/search/vertex_cut.h"

namespace loipe::agent {

namespace {

constexpr std::size_t kGroup = 8;  ///< games played together
constexpr int kConsidered = 16;    ///< moves that share the simulations, at most
constexpr int kMostGames = 100'000;
constexpr int kFirstGameRank = 100;
const char* const kMethod = "alphagrad";

/// What one evaluation of so many tokens takes on a common CPU, tree and features included: a
/// part for each token and one for each pair.
double seconds_of_evaluation(double tokens) {
  return 1.5 * (2e-6 * tokens + 25e-9 * tokens * tokens) + 20e-6;
}

/// Of a whole game with tree search: positions shrink evenly.
double seconds_of_game(double choices, double tokens, int simulations) {
  double seconds = 0;
  constexpr int kSteps = 8;
  for (int k = 0; k < kSteps; ++k)
    seconds += seconds_of_evaluation(std::min<double>(kMostTokens, tokens * (kSteps - k) / kSteps)) / kSteps;
  return choices * (1 + simulations) * seconds;
}

std::int64_t total_of(const published::Graph& graph, const std::vector<int>& order,
                      published::RuleSet rules) {
  Game game(graph, rules);
  for (int vertex : order) game.apply(vertex);
  return game.total();
}

/// By the cuts of what safe eliminations leave (scalar graphs only).
std::optional<std::int64_t> bound_of(const Game& game) {
  if (!game.is_scalar()) return {};
  search::VertexCut cuts(game);
  std::int64_t bound = game.total();
  for (int vertex : game.legal_vertices()) bound = saturated_sum(bound, search::least_cost(cuts, vertex));
  return bound;
}

}  // namespace

search::SearchResult search_with_agent(const Agent& agent, const published::Graph& graph,
                                       const search::SearchOptions& options, int simulations) {
  search::Incumbent incumbent(
      options.time_limit_seconds > 0 ? options.time_limit_seconds : options.budget_seconds, options.progress);
  std::vector<std::string> names;
  const auto offer = [&](const std::vector<int>& order, const std::string& name) {
    incumbent.offer(order, total_of(graph, order, options.rules), static_cast<int>(names.size()));
    names.emplace_back(name);
  };
  offer(published::reverse_order(graph), "reverse");
  offer(published::forward_order(graph), "forward");
  offer(published::markowitz_order(graph, options.rules), "markowitz");
  // The published AlphaGrad order is no game of this agent.
  for (const search::KnownOrder& known : options.known)
    offer(known.vertices, known.name == kMethod ? "published " + known.name : known.name);

  search::SearchResult result;
  Game game(graph, options.rules);
  result.lower_bound = bound_of(game);
  if (options.reduce) {
    result.reduced = search::eliminate_safe_vertices(game);
    if (const auto bound = bound_of(game))
      result.lower_bound = std::max(*bound, result.lower_bound.value_or(0));
  }
  const double choices = static_cast<double>(game.legal_vertices().size());
  const double tokens = static_cast<double>(observe(game, Scores(game), {}).tokens());

  const Network network(agent.architecture);
  PlayOptions play{
      {0, 1, 0}, options.rules, options.reduce, false, [&] { return incumbent.is_out_of_time(); }};
  const auto take = [&](const PlayedGame& played, int rank) {
    if (!played.best.vertices.empty()) incumbent.offer(played.best.vertices, played.best.cost, rank);
    incumbent.report();
  };
  const GameSpec first{&graph, options.seed};
  const PlayedGame alone = play_games(network, agent.weights, {&first, 1}, play).front();
  take(alone, kFirstGameRank);
  if (simulations > 0) {
    const double one = seconds_of_game(choices, tokens, simulations);
    const auto games =
        static_cast<std::size_t>(std::clamp(options.budget_seconds / 2 / one, 1.0, double{kMostGames}));
    play.effort = {simulations, std::min(kConsidered, simulations), 1};
    const std::size_t groups = (games + kGroup - 1) / kGroup;
    std::atomic<bool> is_done = false;
    run_parallel(groups, thread_count(options.threads), [&](std::size_t group) {
      if (is_done || incumbent.is_out_of_time()) return;
      std::vector<GameSpec> specs;
      for (std::size_t k = group * kGroup; k < std::min(games, (group + 1) * kGroup); ++k)
        specs.push_back({&graph, options.seed * 1'000'003 + k});
      const std::vector<PlayedGame> played = play_games(network, agent.weights, specs, play);
      for (std::size_t k = 0; k < played.size(); ++k)
        take(played[k], kFirstGameRank + 1 + static_cast<int>(group * kGroup + k));
      if (result.lower_bound && incumbent.cost() <= *result.lower_bound) is_done = true;
    });
  }
  result.order = incumbent.order();
  result.cost = incumbent.cost();
  const auto name_of = [&](int rank) {
    return rank < kFirstGameRank ? names[static_cast<std::size_t>(rank)] : std::string(kMethod);
  };
  result.method = name_of(incumbent.rank());
  result.seconds = incumbent.seconds();
  for (const search::Fall& fall : incumbent.history())
    result.history.push_back({fall.seconds, fall.cost, name_of(fall.rank)});
  return result;
}

}  // namespace loipe::agent
