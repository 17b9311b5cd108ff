// SPDX-License-Identifier: Apache-2.0
#include "orders/published/state.h"

#include <loipe/error.h>

#include <algorithm>
#include <string>

namespace loipe::published {
namespace {

std::int64_t checked_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw UserError("the multiplications of one elimination do not fit in 64 bits");
  }
  return sum;
}

/// Order within the lists carries no meaning, so the last element fills the gap.
void remove_unordered(std::vector<int>& nodes, int node) {
  const auto place = std::ranges::find(nodes, node);
  *place = nodes.back();
  nodes.pop_back();
}

}  // namespace

State::State(const Graph& graph, RuleSet rules)
    : algebra_(&EdgeAlgebra::get(rules)),
      input_count_(graph.input_count()),
      columns_(static_cast<std::size_t>(graph.vertex_count() + graph.copy_count())),
      edges_(static_cast<std::size_t>(graph.node_count()) * columns_),
      predecessors_(columns_),
      successors_(static_cast<std::size_t>(graph.node_count())),
      is_eliminable_(static_cast<std::size_t>(graph.vertex_count())) {
  constexpr std::size_t kExpectedNeighbours = 32;
  for (auto& nodes : predecessors_) nodes.reserve(kExpectedNeighbours);
  for (auto& nodes : successors_) nodes.reserve(kExpectedNeighbours);
  for (const GraphEdge& placed : graph.edges()) {
    absorb(placed.source, placed.destination, placed.edge);
  }
  for (int vertex = 1; vertex <= graph.vertex_count(); ++vertex) {
    is_eliminable_[static_cast<std::size_t>(vertex - 1)] = !graph.is_pure_output(vertex);
  }
}

std::int64_t State::cost(int vertex) const {
  check_eliminable(vertex);
  std::int64_t total = 0;
  for (const int k : successors(vertex)) {
    const Edge& post = edge(node(vertex), k);
    for (const int i : predecessors(vertex)) {
      total = checked_sum(total, algebra_->multiplications(edge(i, node(vertex)), post));
    }
  }
  return total;
}

std::int64_t State::eliminate(int vertex) {
  const std::int64_t total = cost(vertex);
  const int j = node(vertex);
  for (const int k : successors(vertex)) {
    const Edge post = edge(j, k);
    for (const int i : predecessors(vertex)) {
      absorb(i, k, algebra_->product(edge(i, j), post));
    }
  }
  for (const int k : successors(vertex)) {
    edge_at(j, k) = {};
    remove_unordered(predecessors_[column(k)], j);
  }
  for (const int i : predecessors(vertex)) {
    edge_at(i, j) = {};
    remove_unordered(successors_[index(i)], j);
  }
  predecessors_[column(j)].clear();
  successors_[index(j)].clear();
  is_eliminable_[static_cast<std::size_t>(vertex - 1)] = false;
  return total;
}

std::int64_t State::eliminate_front(int source, int vertex) {
  check_eliminable(vertex);
  const int j = node(vertex);
  const Edge pre = edge(source, j);
  if (pre.type == EdgeType::none) return 0;
  std::int64_t total = 0;
  for (const int k : successors(vertex)) {
    total = checked_sum(total, algebra_->multiplications(pre, edge(j, k)));
    absorb(source, k, algebra_->product(pre, edge(j, k)));
  }
  detach(source, j);
  return total;
}

std::int64_t State::eliminate_back(int vertex, int destination) {
  check_eliminable(vertex);
  const int j = node(vertex);
  const Edge post = edge(j, destination);
  if (post.type == EdgeType::none) return 0;
  std::int64_t total = 0;
  for (const int i : predecessors(vertex)) {
    total = checked_sum(total, algebra_->multiplications(edge(i, j), post));
    absorb(i, destination, algebra_->product(edge(i, j), post));
  }
  detach(j, destination);
  return total;
}

void State::detach(int source, int destination) {
  edge_at(source, destination) = {};
  remove_unordered(successors_[index(source)], destination);
  remove_unordered(predecessors_[column(destination)], source);
}

bool State::is_eliminable(int vertex) const {
  return vertex >= 1 && static_cast<std::size_t>(vertex) <= is_eliminable_.size() &&
         is_eliminable_[static_cast<std::size_t>(vertex - 1)];
}

/// The extents of what is added replace the old ones, as in the reference
/// implementation; they differ only behind a concatenation.
void State::absorb(int source, int destination, const Edge& added) {
  Edge& existing = edge_at(source, destination);
  if (existing.type == EdgeType::none) {
    successors_[index(source)].push_back(destination);
    predecessors_[column(destination)].push_back(source);
  }
  existing = {algebra_->sum_type(existing.type, added.type), added.extents};
}

void State::check_eliminable(int vertex) const {
  if (is_eliminable(vertex)) return;
  throw UserError("vertex " + std::to_string(vertex) +
                  " cannot be eliminated: it is an output, is already eliminated, or is not one of 1 to " +
                  std::to_string(is_eliminable_.size()));
}

}  // namespace loipe::published
