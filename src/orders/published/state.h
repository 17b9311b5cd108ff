// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orders/published/graph.h"

namespace loipe::published {

/// A graph in the course of vertex elimination. Eliminating j does
///   c_ki += c_kj * c_ji   for every predecessor i and successor k of j
/// and removes j; only the multiplications count. Copying a State saves a
/// position. Lists are reserved at construction, so that `eliminate` allocates
/// only where a vertex gathers more neighbours than ever before.
class State {
 public:
  explicit State(const Graph& graph, RuleSet rules = RuleSet::published);

  /// Multiplications that eliminating `vertex` now would take.
  std::int64_t cost(int vertex) const;

  /// Eliminates and returns the same number. UserError if the vertex does not
  /// exist, is a pure output, or has been eliminated before.
  std::int64_t eliminate(int vertex);

  /// One edge of a vertex j: i -> j in front of it, with all its successors, or j -> k behind
  /// it, with all its predecessors, is multiplied out and removed. Returns the multiplications;
  /// 0 without that edge.
  std::int64_t eliminate_front(int source, int vertex);
  std::int64_t eliminate_back(int vertex, int destination);

  /// True while `vertex` may be eliminated.
  bool is_eliminable(int vertex) const;

  /// Nodes with an edge into, or from, this vertex, in no particular order.
  std::span<const int> predecessors(int vertex) const { return predecessors_[column(node(vertex))]; }
  std::span<const int> successors(int vertex) const { return successors_[index(node(vertex))]; }

  /// The edge between two nodes; type none where there is none. The
  /// destination is not an input.
  const Edge& edge(int source, int destination) const {
    return edges_[index(source) * columns_ + column(destination)];
  }

  int node(int vertex) const { return input_count_ + vertex - 1; }

 private:
  static std::size_t index(int node) { return static_cast<std::size_t>(node); }
  std::size_t column(int node) const { return static_cast<std::size_t>(node - input_count_); }
  Edge& edge_at(int source, int destination) {
    return edges_[index(source) * columns_ + column(destination)];
  }
  void detach(int source, int destination);
  void absorb(int source, int destination, const Edge& added);
  void check_eliminable(int vertex) const;

  const EdgeAlgebra* algebra_;
  int input_count_;
  std::size_t columns_;                         ///< vertices and copies: all but the inputs
  std::vector<Edge> edges_;                     ///< [source node][column of the destination]
  std::vector<std::vector<int>> predecessors_;  ///< [column]
  std::vector<std::vector<int>> successors_;    ///< [node]
  std::vector<bool> is_eliminable_;             ///< [vertex number - 1]
};

}  // namespace loipe::published
