// SPDX-License-Identifier: Apache-2.0
#include "orders/published/markowitz.h"

#include "orders/published/orders.h"

namespace loipe::published {
namespace {

/// Weight of an edge that is not dense. The reference implementation indexes a
/// table made for types 2 to 5 with every type: negative indices wrap around
/// once, and what is still outside is clamped. Hence the odd company.
std::int64_t structured_weight(const Edge& edge) {
  switch (edge.type) {
    case EdgeType::diagonal_00_diagonal_11:
    case EdgeType::diagonal_01_diagonal_10:
    case EdgeType::delta_00_diagonal_11: return 1;
    case EdgeType::diagonal_11:
    case EdgeType::diagonal_01:
    case EdgeType::copy: return edge.extents[0];
    default: return edge.extents[1];
  }
}

std::int64_t pre_weight(const Edge& edge) {
  if (edge.type != EdgeType::dense) return structured_weight(edge);
  return std::int64_t{edge.extents[0]} * edge.extents[1];
}

std::int64_t post_weight(const Edge& edge) {
  if (edge.type != EdgeType::dense) return structured_weight(edge);
  return std::int64_t{edge.extents[2]} * edge.extents[3];
}

}  // namespace

std::int64_t markowitz_degree(const State& state, int vertex) {
  const int j = state.node(vertex);
  std::int64_t pre = 0;
  for (const int i : state.predecessors(vertex)) pre += pre_weight(state.edge(i, j));
  std::int64_t post = 0;
  for (const int k : state.successors(vertex)) post += post_weight(state.edge(j, k));
  return pre * post;
}

std::vector<int> markowitz_order(const Graph& graph, RuleSet rules) {
  const std::vector<int> vertices = eliminable(graph);
  State state(graph, rules);
  std::vector<int> order;
  order.reserve(vertices.size());
  while (order.size() < vertices.size()) {
    int best = 0;
    std::int64_t best_degree = 0;
    for (const int vertex : vertices) {
      if (!state.is_eliminable(vertex)) continue;
      const std::int64_t degree = markowitz_degree(state, vertex);
      if (best != 0 && degree >= best_degree) continue;
      best = vertex;
      best_degree = degree;
    }
    state.eliminate(best);
    order.push_back(best);
  }
  return order;
}

}  // namespace loipe::published
