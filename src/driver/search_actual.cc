// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/rng.h"
#include "driver/search.h"
#include "orders/published_graph.h"
#include "orders/search/incumbent.h"

namespace loipe {

namespace {

/// Of each quarter of the budget, one is for counted moves; the others are for the model.
constexpr int kModelSearches = 3;
/// Counted moves per second of the budget: few enough for programs of a few hundred vertices.
constexpr double kMovesPerSecond = 50;

class ActualSearch {
 public:
  ActualSearch(const Subject& subject, const Program& program, const search::SearchOptions& options)
      : subject_(subject),
        program_(program),
        options_(options),
        request_{floating_arguments(program), {"search", {}}, batch_axis_arguments(subject)},
        incumbent_(options.budget_seconds, options.progress) {}

  search::SearchResult run() {
    for (const std::string& name : subject_order_names(subject_))
      offer(subject_order(name, subject_, program_).vertices, name);
    search_model();
    improve();
    search::SearchResult result;
    result.order = incumbent_.order();
    result.cost = incumbent_.cost();
    result.method = names_[static_cast<std::size_t>(incumbent_.rank())];
    result.seconds = incumbent_.seconds();
    result.history = incumbent_.history();
    if (result.cost == 0) result.lower_bound = 0;
    return result;
  }

 private:
  std::int64_t count(const std::vector<int>& order) {
    request_.order.vertices = order;
    return accumulate(program_, request_).cost.multiplications;
  }

  void offer(const std::vector<int>& order, const std::string& name) {
    names_.push_back(name);
    incumbent_.offer(order, count(order), static_cast<int>(names_.size()) - 1);
    incumbent_.report();
  }

  /// Programs that the published rule does not cover have no model.
  void search_model() {
    try {
      const published::Graph model =
          published::build_graph(published::published_spec(program_), {.unit_partials = true});
      for (int k = 0; k < kModelSearches && !incumbent_.is_out_of_time(); ++k) {
        search::SearchOptions options = options_;
        options.rules = published::RuleSet::clean;
        options.budget_seconds = options_.budget_seconds / (kModelSearches + 1);
        options.time_limit_seconds = std::max(0.001, options_.budget_seconds - incumbent_.seconds());
        options.seed = options_.seed * kModelSearches + static_cast<std::uint64_t>(k);
        options.progress = {};
        const search::SearchResult found = search::search_order(model, options);
        offer(found.order, found.method);
      }
    } catch (const Unsupported&) {
    }
  }

  /// Moves one vertex, or swaps two; whatever is not dearer is kept.
  void improve() {
    Rng rng(options_.seed);
    std::vector<int> order = incumbent_.order();
    std::int64_t cost = incumbent_.cost();
    const auto size = static_cast<std::int64_t>(order.size());
    const auto moves = static_cast<int>(kMovesPerSecond * options_.budget_seconds);
    for (int move = 0; move < moves && size > 1 && !incumbent_.is_out_of_time(); ++move) {
      std::vector<int> changed = order;
      const std::int64_t from = rng.below(size), to = rng.below(size);
      if (from == to) continue;
      const auto low = changed.begin() + std::min(from, to), high = changed.begin() + std::max(from, to);
      if (rng.chance(0.25)) std::iter_swap(low, high);
      else if (from < to) std::rotate(low, low + 1, high + 1);
      else std::rotate(low, high, high + 1);
      const std::int64_t now = count(changed);
      if (now > cost) continue;
      order = std::move(changed);
      if (std::exchange(cost, now) == now) continue;
      names_.emplace_back("anneal");
      incumbent_.offer(order, cost, static_cast<int>(names_.size()) - 1);
      incumbent_.report();
    }
  }

  const Subject& subject_;
  const Program& program_;
  const search::SearchOptions& options_;
  AccumulationRequest request_;
  search::Incumbent incumbent_;
  std::vector<std::string> names_;  ///< by rank: what found the order
};

}  // namespace

search::SearchResult search_actual_cost(const Subject& subject, const Program& program,
                                        const search::SearchOptions& options) {
  return ActualSearch(subject, program, options).run();
}

}  // namespace loipe
