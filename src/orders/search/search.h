// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "orders/order.h"
#include "orders/published/graph.h"

namespace loipe::search {

enum class Method : std::uint8_t { automatic, greedy, beam, anneal, exact };

enum class MoveSet : std::uint8_t { vertex, edge };

/// An order that the caller knows; the result is never worse.
struct KnownOrder {
  std::string name;
  std::vector<int> vertices;
};

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
  std::vector<KnownOrder> known = {};
  bool proves = true;  ///< whether time goes to lower bounds that no longer change the order
};

/// The best cost fell.
struct HistoryPoint {
  double seconds;
  std::int64_t cost;
  std::string method;  ///< what found it
};

struct SearchResult {
  std::vector<int> order;              ///< empty if there are moves
  std::vector<EliminationMove> moves;  ///< of a search that eliminates edges
  std::int64_t cost = 0;
  std::optional<std::int64_t> lower_bound;  ///< proved; absent where nothing is known
  std::string method;                       ///< what found the order
  double seconds = 0;
  std::vector<HistoryPoint> history;
  int reduced = 0;  ///< vertices that were safely eliminated before the search

  bool is_optimal() const { return lower_bound && *lower_bound >= cost; }
};

/// An order of few multiplications by the published rule: at most those of forward, reverse
/// and minimal Markowitz. The budget is a ceiling: it is turned into an amount of work
/// that one thread of a common CPU does in about half of the time, so that graph, budget and
/// seed alone determine the order; only where the machine is so slow that the time runs
/// out do they not.
SearchResult search_order(const published::Graph& graph, const SearchOptions& options);

/// Vertex and edge eliminations of few multiplications: a quarter of the budget goes to an order
/// of vertices, the rest to annealing from there over sequences with edges. Never dearer than
/// that order. Bounds of vertex elimination do not hold for edges, so there is none.
SearchResult search_moves(const published::Graph& graph, const SearchOptions& options);

}  // namespace loipe::search
