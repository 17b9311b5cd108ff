// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/program.h"
#include "jacobian/local_jacobian.h"

namespace loipe {

using VertexId = std::uint32_t;
using EdgeId = std::uint32_t;

enum class VertexKind : std::uint8_t { independent, intermediate, dependent };

struct Vertex {
  Value value;  ///< the primal value, in the program that the graph was linearized in
  int number;   ///< published number 1..V; 0 for arguments and for vertices that normalisation added
  VertexKind kind;
};

/// c_kj: the local Jacobian of the destination k by the source j.
struct Edge {
  VertexId source;
  VertexId destination;
  LocalJacobian jacobian;
};

/// The linearized computational graph: a directed acyclic graph whose edges carry
/// local Jacobians. Independents, intermediates and dependents are disjoint: an
/// output that is also used, given twice, or an argument itself has a dependent
/// vertex of its own behind an identity edge. Between two vertices there is at
/// most one edge.
class CompGraph {
 public:
  VertexId add_vertex(const Vertex& vertex);
  EdgeId add_edge(VertexId source, VertexId destination, LocalJacobian jacobian);
  void remove_edge(EdgeId edge);
  std::optional<EdgeId> find_edge(VertexId source, VertexId destination) const;

  std::size_t vertex_count() const { return vertices_.size(); }
  std::size_t edge_count() const { return live_edges_; }
  const Vertex& vertex(VertexId v) const { return vertices_[v]; }
  const Edge& edge(EdgeId e) const { return edges_[e].edge; }
  LocalJacobian& jacobian(EdgeId e) { return edges_[e].edge.jacobian; }
  std::span<const EdgeId> in_edges(VertexId v) const { return in_[v]; }
  std::span<const EdgeId> out_edges(VertexId v) const { return out_[v]; }

  const std::vector<VertexId>& independents() const { return independents_; }
  /// The dependent vertex of each output of the program, in the outputs' order.
  const std::vector<VertexId>& dependents() const { return dependents_; }
  void add_dependent(VertexId v) { dependents_.push_back(v); }
  /// Makes all independents (dependents) intermediate and returns them.
  std::vector<VertexId> release_independents() { return release(independents_); }
  std::vector<VertexId> release_dependents() { return release(dependents_); }
  /// Intermediate vertices in program order.
  std::vector<VertexId> intermediates() const;

 private:
  std::vector<VertexId> release(std::vector<VertexId>& ends);

  struct Slot {
    Edge edge;
    std::uint32_t place_in, place_out;  ///< positions in the lists of its ends
  };
  std::vector<Vertex> vertices_;
  std::vector<std::vector<EdgeId>> in_, out_;
  std::vector<Slot> edges_;
  std::vector<EdgeId> free_;
  std::size_t live_edges_ = 0;
  std::vector<VertexId> independents_, dependents_;
};

/// "v3 -> v7: (a | a) ...", one edge a line.
std::string to_string(const CompGraph& graph, const Program& program);
/// Graphviz DOT text. `turns` has, by the number of a vertex, when it is eliminated, from 1; 0 or
/// absent: never. Vertices with a turn show it, and are the darker the later it comes.
std::string to_dot(const CompGraph& graph, const Program& program, std::span<const int> turns = {});

}  // namespace loipe
