// SPDX-License-Identifier: Apache-2.0
#include "orders/search/search.h"

#include <algorithm>

#include "orders/published/markowitz.h"
#include "orders/published/orders.h"
#include "orders/search/anneal.h"
#include "orders/search/costly_bound.h"
#include "orders/search/greedy.h"
#include "orders/search/layers.h"
#include "orders/search/parallel.h"
#include "orders/search/reduce.h"
#include "orders/search/subsets.h"
#include "orders/search/vertex_cut.h"

namespace loipe::search {

namespace {

/// What one thread does in a second of its share of the budget; see Game::work.
constexpr double kWorkPerSecond = 50e6;
constexpr std::size_t kExactComponent = 18;
constexpr std::size_t kLargestExactComponent = 23;
constexpr int kFirstChainRank = 100;

class Search {
 public:
  Search(const published::Graph& graph, const SearchOptions& options)
      : graph_(graph),
        options_(options),
        incumbent_(options.time_limit_seconds > 0 ? options.time_limit_seconds : options.budget_seconds,
                   options.progress),
        game_(graph, options.rules),
        threads_(thread_count(options.threads)) {}

  SearchResult run() {
    offer_classical_orders();
    bound_from_cuts();
    if (options_.reduce) {
      reduced_ = eliminate_safe_vertices(game_);
      bound_from_cuts();
    }
    if (!is_done()) search();
    // Last, so that nothing starts from them: what is found is the search's own, where it is better.
    for (const KnownOrder& known : options_.known) offer(play(known.vertices), known.vertices, known.name);
    return result();
  }

 private:
  bool wants(Method method) const {
    return options_.method == method || options_.method == Method::automatic;
  }
  bool is_done() const { return lower_bound_ && *lower_bound_ >= incumbent_.cost(); }

  void offer(std::int64_t cost, const std::vector<int>& order, const std::string& name) {
    names_.push_back(name);
    incumbent_.offer(order, cost, static_cast<int>(names_.size()) - 1);
  }

  std::int64_t play(const std::vector<int>& order) {
    Game game(graph_, options_.rules);
    for (int vertex : order) game.apply(vertex);
    return game.total();
  }

  void offer_classical_orders() {
    const std::vector<int> reverse = published::reverse_order(graph_);
    const std::vector<int> forward = published::forward_order(graph_);
    const std::vector<int> markowitz = published::markowitz_order(graph_, options_.rules);
    offer(play(reverse), reverse, "reverse");
    offer(play(forward), forward, "forward");
    offer(play(markowitz), markowitz, "markowitz");
  }

  /// Costs by cuts of what is left, and what all costs at least.
  void bound_from_cuts() {
    if (!game_.is_scalar())
      return raise_bound(saturated_sum(game_.total(), costly_bound(game_, options_.rules)));
    VertexCut cuts(game_);
    std::int64_t bound = game_.total();
    least_costs_.assign(static_cast<std::size_t>(graph_.vertex_count()), 0);
    for (int vertex : game_.legal_vertices())
      bound += least_costs_[static_cast<std::size_t>(vertex - 1)] = least_cost(cuts, vertex);
    raise_bound(bound);
  }

  void raise_bound(std::int64_t bound) { lower_bound_ = std::max(lower_bound_.value_or(0), bound); }

  void search() {
    if (wants(Method::greedy) || wants(Method::beam) || wants(Method::anneal)) play_greedy_games();
    if (is_done()) return;
    if (wants(Method::exact)) solve_components();
    if (game_.legal_vertices().empty()) return raise_bound(game_.total());
    if (game_.is_scalar()) bound_by_clusters(8);
    if (options_.method == Method::exact && !is_done()) search_exhaustively();
    if (options_.method == Method::beam && !is_done()) search_beam();
    if (options_.method == Method::automatic && game_.legal_vertices().size() <= 14 && !is_done())
      search_exhaustively();
    if (wants(Method::anneal) && !is_done()) anneal();
    // What time is left may raise the bound, but no longer changes the order.
    const int largest = options_.budget_seconds < 2 ? 10 : options_.budget_seconds < 30 ? 13 : 15;
    for (int size = 10; options_.proves && game_.is_scalar() && size <= largest && !is_done(); ++size) {
      if (!incumbent_.is_out_of_time()) bound_by_clusters(size);
    }
  }

  void play_greedy_games() {
    const std::size_t base = game_.depth();
    const int games = options_.method == Method::greedy ? 64 : 5;
    for (int k = 0; k < games && !incumbent_.is_out_of_time(); ++k) {
      GreedyOptions greedy{0.5, 0, 0, {}};
      if (k == 1) greedy.look_ahead = 0;
      if (k == 2) greedy.look_ahead = 1;
      if (k > 2) greedy = {0.1 * (k % 13), 0.05 * (k % 5), options_.seed + static_cast<std::uint64_t>(k), {}};
      greedy.is_out_of_time = [this] { return incumbent_.is_out_of_time(); };
      if (play_greedily(game_, greedy)) offer(game_.total(), game_.moves(), "greedy");
      game_.undo_to(base);
    }
  }

  /// Components that a dynamic program can solve are solved, and played first.
  void solve_components() {
    if (!game_.is_scalar()) return;
    const std::size_t most = options_.method == Method::exact ? kLargestExactComponent : kExactComponent;
    for (const std::vector<int>& component : components(game_)) {
      if (component.size() > most || incumbent_.is_out_of_time()) continue;
      for (int vertex : optimal_component_order(game_, component)) game_.apply(vertex);
    }
    if (game_.legal_vertices().empty()) offer(game_.total(), game_.moves(), "exact");
  }

  /// Safe eliminations and solved components are part of some optimal order, so that the
  /// bound of the rest bounds the whole.
  void bound_by_clusters(int size) {
    raise_bound(saturated_sum(game_.total(), cluster_bound(game_, size, incumbent_)));
  }

  void search_exhaustively() {
    LayerOptions layers{2'000'000, least_costs_};
    const LayerResult found = search_layers(game_, incumbent_.cost() - game_.total(), layers, incumbent_);
    offer_rest(found, "exact");
    if (found.is_exhaustive) raise_bound(incumbent_.cost());
  }

  void search_beam() {
    for (std::size_t width = 10; !incumbent_.is_out_of_time() && width <= 10000; width *= 10) {
      if (static_cast<double>(width) > 300 * options_.budget_seconds) break;
      const LayerResult found = search_layers(game_, Game::kTooMuch, {width, least_costs_}, incumbent_);
      offer_rest(found, "beam");
      if (found.is_exhaustive && !found.order.empty()) return raise_bound(incumbent_.cost());
    }
  }

  void offer_rest(const LayerResult& found, const char* name) {
    if (found.order.empty()) return;
    std::vector<int> order = game_.moves();
    order.insert(order.end(), found.order.begin(), found.order.end());
    offer(saturated_sum(game_.total(), found.cost), order, name);
  }

  /// The chains start from the best order so far, without what has been played.
  void anneal() {
    const int chains = game_.is_scalar() ? 8 : 4;
    const double scale = 2 * static_cast<double>(incumbent_.cost());
    std::vector<int> start;
    for (int vertex : incumbent_.order())
      if (game_.is_legal(vertex)) start.push_back(vertex);
    std::atomic<int> finished_rank = kFirstChainRank + chains;
    run_parallel(chains, threads_, [&](int k) {
      AnnealOptions chain;
      chain.seed = options_.seed * 1000003 + static_cast<std::uint64_t>(k);
      chain.work = static_cast<std::uint64_t>(options_.budget_seconds * kWorkPerSecond / chains);
      chain.first_temperature = scale * (game_.is_scalar() ? .008 : .004);
      chain.last_temperature = game_.is_scalar() ? scale * .0006 : std::max(scale * 1.5e-6, 0.1);
      chain.rank = kFirstChainRank + k;
      chain.good_enough = lower_bound_.value_or(0);
      Chain(game_, start, chain).run(incumbent_, finished_rank);
    });
  }

  std::string name_of(int rank) const {
    return rank < kFirstChainRank ? names_[static_cast<std::size_t>(rank)] : "anneal";
  }

  SearchResult result() const {
    SearchResult result;
    result.order = incumbent_.order();
    result.cost = incumbent_.cost();
    result.lower_bound = lower_bound_;
    result.method = name_of(incumbent_.rank());
    result.seconds = incumbent_.seconds();
    for (const Fall& fall : incumbent_.history())
      result.history.push_back({fall.seconds, fall.cost, name_of(fall.rank)});
    result.reduced = reduced_;
    return result;
  }

  const published::Graph& graph_;
  const SearchOptions& options_;
  Incumbent incumbent_;
  Game game_;
  int threads_;
  int reduced_ = 0;
  std::vector<std::string> names_;  ///< of ranks below kFirstChainRank
  std::vector<std::int64_t> least_costs_;
  std::optional<std::int64_t> lower_bound_;
};

}  // namespace

SearchResult search_order(const published::Graph& graph, const SearchOptions& options) {
  return Search(graph, options).run();
}

}  // namespace loipe::search
