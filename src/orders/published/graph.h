// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "orders/published/edge_algebra.h"
#include "orders/published/graph_spec.h"

namespace loipe::published {

/// A local Jacobian in its place. Nodes are numbered from 0: the inputs, then
/// the vertices, then one copy for each output that is also used.
struct GraphEdge {
  int source;
  int destination;
  Edge edge;

  friend bool operator==(const GraphEdge&, const GraphEdge&) = default;
};

struct BuildOptions {
  /// Repeats a defect of the reference graph builder, which knows a vertex by
  /// its printed name: all unused results are printed alike, so that their
  /// edges end in the first unused vertex. The published BlackScholes counts
  /// rest on it.
  bool drop_variable_alias = false;
  /// Not the published graph: the partials of additions, subtractions and negations, which
  /// are +1 or -1, store no values, so that products with them are free. With the clean
  /// rules this models the operations that elimination records.
  bool unit_partials = false;
};

/// The computational graph as the published rule sees it. Immutable.
class Graph {
 public:
  int input_count() const { return input_count_; }
  int vertex_count() const { return static_cast<int>(is_pure_output_.size()); }
  int copy_count() const { return copy_count_; }
  int node_count() const { return input_count_ + vertex_count() + copy_count_; }

  int node_of_vertex(int number) const { return input_count_ + number - 1; }

  /// An output that no other vertex uses, which is never eliminated.
  bool is_pure_output(int number) const { return is_pure_output_[static_cast<std::size_t>(number - 1)]; }

  /// Sorted by destination, then source; at most one edge between two nodes.
  std::span<const GraphEdge> edges() const { return edges_; }

 private:
  friend Graph build_graph(const GraphSpec& spec, BuildOptions options);

  int input_count_ = 0;
  int copy_count_ = 0;
  std::vector<bool> is_pure_output_;  ///< of vertex number - 1
  std::vector<GraphEdge> edges_;
};

/// Derives all edges from shapes and primitives. A variable that occurs twice
/// in one vertex has one edge, that of its last place. An output that is also
/// used stays an ordinary vertex and gets a copy, joined by an edge of type
/// delta_00_diagonal_11, which is not free. UserError for a reference to
/// something that does not exist or comes later.
Graph build_graph(const GraphSpec& spec, BuildOptions options = {});

}  // namespace loipe::published
