// SPDX-License-Identifier: Apache-2.0
#include "orders/published/orders.h"

#include <loipe/error.h>

#include <algorithm>
#include <string>

#include "orders/published/state.h"

namespace loipe::published {
namespace {

/// " missing 3, 5;" or nothing.
std::string listed(const char* what, const std::vector<int>& vertices) {
  if (vertices.empty()) return "";
  constexpr std::size_t kShown = 8;
  std::string text = std::string(" ") + what;
  for (std::size_t k = 0; k < std::min(vertices.size(), kShown); ++k) {
    text += (k == 0 ? " " : ", ") + std::to_string(vertices[k]);
  }
  return text + (vertices.size() > kShown ? ", ...;" : ";");
}

}  // namespace

std::vector<int> eliminable(const Graph& graph) {
  std::vector<int> vertices;
  for (int vertex = 1; vertex <= graph.vertex_count(); ++vertex) {
    if (!graph.is_pure_output(vertex)) vertices.push_back(vertex);
  }
  return vertices;
}

std::vector<int> forward_order(const Graph& graph) { return eliminable(graph); }

std::vector<int> reverse_order(const Graph& graph) {
  std::vector<int> order = eliminable(graph);
  std::ranges::reverse(order);
  return order;
}

void validate_order(const Graph& graph, std::span<const int> order) {
  std::vector<int> times(static_cast<std::size_t>(graph.vertex_count()), 0);
  std::vector<int> foreign;
  for (const int vertex : order) {
    if (vertex < 1 || vertex > graph.vertex_count() || graph.is_pure_output(vertex)) {
      foreign.push_back(vertex);
    } else {
      ++times[static_cast<std::size_t>(vertex - 1)];
    }
  }
  std::vector<int> missing;
  std::vector<int> repeated;
  for (const int vertex : eliminable(graph)) {
    const int seen = times[static_cast<std::size_t>(vertex - 1)];
    if (seen == 0) missing.push_back(vertex);
    if (seen > 1) repeated.push_back(vertex);
  }
  if (missing.empty() && repeated.empty() && foreign.empty()) return;
  throw UserError("an order names every vertex but the pure outputs once:" + listed("missing", missing) +
                  listed("repeated", repeated) + listed("not eliminable", foreign));
}

std::int64_t count(const Graph& graph, std::span<const int> order, RuleSet rules) {
  validate_order(graph, order);
  State state(graph, rules);
  std::int64_t total = 0;
  for (const int vertex : order) {
    if (__builtin_add_overflow(total, state.eliminate(vertex), &total)) {
      throw UserError("the multiplications of this order do not fit in 64 bits");
    }
  }
  return total;
}

}  // namespace loipe::published
