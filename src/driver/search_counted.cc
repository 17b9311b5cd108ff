// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "driver/counted_chain.h"
#include "driver/search.h"
#include "orders/published_graph.h"
#include "orders/search/parallel.h"

namespace loipe {

namespace {

using search::MovesIncumbent;
using search::Step;

constexpr double kModelShare = 0.4;  ///< of the budget, for all models together
/// A model is only nearly right: half of its share goes to its very best order, the other half to
/// several good ones, at least so many in all, and more where there is a second for each.
constexpr int kFewestModelSearches = 4, kMostModelSearches = 40;
constexpr int kChains = 4;
/// Steps of counting (see Counted) that one thread does in a second of its share.
constexpr double kWorkPerSecond = 1.4e6;

class CountedSearch {
 public:
  CountedSearch(const Subject& subject, const Program& program, const SubjectSearchOptions& options)
      : subject_(subject),
        program_(program),
        options_(options),
        cost_(subject, program, options.objective, options.constants),
        incumbent_(options.search.time_limit_seconds > 0 ? options.search.time_limit_seconds
                                                         : options.search.budget_seconds,
                   options.search.progress) {}

  search::SearchResult run() {
    make_game();
    for (const search::KnownOrder& known : known_orders(subject_, program_))
      offer(known.vertices, known.name);
    if (game_) search_models();
    const search::Method method = options_.search.method;
    if (method == search::Method::automatic || method == search::Method::anneal) improve();
    return result();
  }

 private:
  struct Candidate {
    std::vector<Step> steps;
    std::int64_t cost;
    std::string name;
  };

  void make_game() {
    try {
      game_.emplace(published_graph(subject_, program_, PublishedGraph::corrected),
                    published::RuleSet::published, Game::Moves::vertices_and_edges);
    } catch (const Unsupported&) {
      if (options_.moves == search::MoveSet::edge) throw;
    }
  }

  const Game* game() const { return game_ ? &*game_ : nullptr; }

  void offer(const std::vector<int>& order, const std::string& name) {
    Candidate candidate;
    for (int vertex : order)
      candidate.steps.push_back({EliminationMove::Kind::vertex, game_ ? game_->node_of(vertex) : vertex});
    candidate.cost = cost_.of({name, order}).cost;
    candidate.name = name;
    incumbent_.offer(candidate.steps, candidate.cost, static_cast<int>(candidates_.size()));
    incumbent_.report();
    candidates_.push_back(std::move(candidate));
  }

  void search_models() {
    const published::GraphSpec spec = published::published_spec(program_);
    const double seconds = kModelShare * options_.search.budget_seconds;
    const int searches = std::clamp(static_cast<int>(seconds), kFewestModelSearches, kMostModelSearches);
    for (int k = 0; k < searches && !incumbent_.is_out_of_time(); ++k) {
      // With free +1 and -1, and now and then as published.
      const bool is_published = k % kFewestModelSearches == kFewestModelSearches - 1;
      const published::Graph model = published::build_graph(spec, {.unit_partials = !is_published});
      search::SearchOptions options = options_.search;
      options.rules = published::RuleSet::clean;
      options.budget_seconds = k == 0 ? seconds / 2 : seconds / 2 / (searches - 1);
      options.time_limit_seconds = std::max(0.001, incumbent_.budget() - incumbent_.seconds());
      options.seed = options_.search.seed * kMostModelSearches + static_cast<std::uint64_t>(k);
      options.progress = {};
      options.proves = false;
      const search::SearchResult found = search::search_order(model, options);
      offer(found.order, found.method + " of a model");
    }
  }

  /// Chains from the best candidates, two of them from the very best.
  void improve() {
    std::vector<Candidate*> ranked;
    for (Candidate& candidate : candidates_) ranked.push_back(&candidate);
    std::ranges::sort(ranked, {}, [](const Candidate* c) { return std::pair(c->cost, c); });
    const double scale = static_cast<double>(ranked.front()->cost);
    const double work = (1 - kModelShare) * options_.search.budget_seconds * kWorkPerSecond / kChains;
    search::run_parallel(kChains, search::thread_count(options_.search.threads), [&](int k) {
      const std::size_t start =
          std::min<std::size_t>(static_cast<std::size_t>(std::max(k - 1, 0)), ranked.size() - 1);
      CountedChainOptions chain;
      chain.seed = options_.search.seed * 1000003 + static_cast<std::uint64_t>(k);
      chain.work = static_cast<std::uint64_t>(work);
      chain.first_temperature = std::max(1e-9, scale * 2e-3);
      chain.last_temperature = chain.first_temperature / 20;
      chain.rank = static_cast<int>(candidates_.size()) + k;
      chain.with_edges = options_.moves == search::MoveSet::edge;
      CountedChain(cost_, game(), ranked[start]->steps, ranked[start]->cost, chain).run(incumbent_);
    });
  }

  std::string name_of(int rank) const {
    const auto place = static_cast<std::size_t>(rank);
    return place < candidates_.size() ? candidates_[place].name : "counted anneal";
  }

  search::SearchResult result() {
    const EliminationOrder order = CountedChain::order_of(game(), incumbent_.order());
    search::SearchResult result;
    result.order = order.vertices;
    result.moves = order.moves;
    if (options_.moves == search::MoveSet::edge && result.moves.empty())
      for (int vertex : std::exchange(result.order, {}))
        result.moves.push_back({EliminationMove::Kind::vertex, vertex});
    result.cost = incumbent_.cost();
    result.method = name_of(incumbent_.rank());
    result.seconds = incumbent_.seconds();
    for (const search::Fall& fall : incumbent_.history())
      result.history.push_back({fall.seconds, fall.cost, name_of(fall.rank)});
    if (result.cost == 0) result.lower_bound = 0;
    return result;
  }

  const Subject& subject_;
  const Program& program_;
  const SubjectSearchOptions& options_;
  CountedCost cost_;
  std::optional<Game> game_;
  MovesIncumbent incumbent_;
  std::vector<Candidate> candidates_;
};

}  // namespace

search::SearchResult search_counted(const Subject& subject, const Program& program,
                                    const SubjectSearchOptions& options) {
  return CountedSearch(subject, program, options).run();
}

}  // namespace loipe
