// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "orders/published/graph.h"

namespace loipe::search {

enum class Method : std::uint8_t { automatic, greedy, beam, anneal, exact };

struct SearchOptions {
  Method method = Method::automatic;
  double budget_seconds = 10;
  std::uint64_t seed = 0;
  int threads = 0;  ///< 0: all cores. The result does not depend on it.
  bool reduce = true;
  published::RuleSet rules = published::RuleSet::published;
  /// Called now and then from any thread, one at a time: seconds, best cost.
  std::function<void(double, std::int64_t)> progress = {};
  /// When to stop at the latest; 0: after the budget.
  double time_limit_seconds = 0;
};

struct SearchResult {
  std::vector<int> order;
  std::int64_t cost = 0;
  std::optional<std::int64_t> lower_bound;  ///< proved; absent where nothing is known
  std::string method;                       ///< what found the order
  double seconds = 0;
  std::vector<std::pair<double, std::int64_t>> history;  ///< whenever the best cost fell
  int reduced = 0;  ///< vertices that were safely eliminated before the search

  bool is_optimal() const { return lower_bound && *lower_bound >= cost; }
};

/// An order of few multiplications by the published rule: at most those of forward, reverse
/// and minimal Markowitz. The budget is a ceiling: it is turned into an amount of work
/// that one thread of a common CPU does in about half of the time, so that graph, budget and
/// seed alone determine the order; only where the machine is so slow that the time runs
/// out do they not.
SearchResult search_order(const published::Graph& graph, const SearchOptions& options);

}  // namespace loipe::search
