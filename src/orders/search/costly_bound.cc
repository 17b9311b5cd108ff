// SPDX-License-Identifier: Apache-2.0
#include "orders/search/costly_bound.h"

#include <algorithm>

#include "orders/search/vertex_cut.h"

namespace loipe::search {

namespace {

using published::EdgeAlgebra;
using published::EdgeType;

std::vector<EdgeType> all_types() {
  std::vector<EdgeType> types;
  for (int code = published::kMinTypeCode; code <= published::kMaxTypeCode; ++code)
    if (code != 0) types.push_back(static_cast<EdgeType>(code));
  return types;
}

bool has_empty_edge(const Game& game) {
  for (int i = 0; i < game.node_count(); ++i) {
    bool is_empty = false;
    Game::for_each(game.successors(i), [&](int k) {
      is_empty =
          is_empty || std::ranges::any_of(game.edge(i, k).extents, [](auto extent) { return extent < 1; });
    });
    if (is_empty) return true;
  }
  return false;
}

}  // namespace

/// Types are struck off until nothing violates the conditions.
CostlyTypes::CostlyTypes(published::RuleSet rules) {
  const EdgeAlgebra& algebra = EdgeAlgebra::get(rules);
  const std::vector<EdgeType> types = all_types();
  const auto place = [](EdgeType type) {
    return static_cast<std::size_t>(published::code(type) - published::kMinTypeCode);
  };
  for (EdgeType type : types)
    is_costly_[place(type)] = !algebra.product_rule(type, EdgeType::dense).is_free &&
                              !algebra.product_rule(EdgeType::dense, type).is_free;
  const auto violates = [&](EdgeType type) {
    return std::ranges::any_of(types, [&](EdgeType other) {
      const bool is_free =
          algebra.product_rule(type, other).is_free || algebra.product_rule(other, type).is_free;
      return (contains(other) && is_free) || !contains(algebra.product_rule(type, other).type) ||
             !contains(algebra.product_rule(other, type).type) || !contains(algebra.sum_type(type, other)) ||
             !contains(algebra.sum_type(other, type));
    });
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (EdgeType type : types) {
      if (!contains(type) || !violates(type)) continue;
      is_costly_[place(type)] = false;
      changed = true;
    }
  }
}

std::int64_t costly_bound(const Game& game, published::RuleSet rules) {
  if (has_empty_edge(game)) return 0;
  const CostlyTypes types(rules);
  VertexCut cuts(game);
  cuts.first_edges(
      [&](int source, int destination) { return types.contains(game.edge(source, destination).type); });
  std::int64_t bound = 0;
  for (int vertex : game.legal_vertices()) bound += least_cost(cuts, vertex);
  return bound;
}

}  // namespace loipe::search
