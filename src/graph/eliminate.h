// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "graph/comp_graph.h"
#include "jacobian/recorder.h"

namespace loipe {

/// What elimination did so far.
struct EliminationStatistics {
  std::int64_t products = 0;       ///< products of two edges
  std::int64_t fill_ins = 0;       ///< products that became a new edge
  std::int64_t absorptions = 0;    ///< products that were added to an edge
  std::int64_t live_elements = 0;  ///< numbers that the edges store now
  std::int64_t peak_elements = 0;  ///< the most they stored after any elimination
};

/// Eliminates vertices of a graph, recording the arithmetic (Griewank and Reese
/// 1991): eliminating j does c_ki += c_kj * c_ji for all predecessors i and
/// successors k, and removes j. When no intermediate vertex is left, the edges from
/// independents to dependents are the Jacobian. Single edges can be eliminated too (Naumann
/// 2004): the chain rule may be applied to the paths through j piece by piece.
class Elimination {
 public:
  Elimination(Recorder& recorder, const Program& program, CompGraph graph);

  void eliminate_vertex(VertexId j);
  /// c_ki += c_kj * c_ji for all successors k of j; removes i -> j. Nothing without that edge.
  void eliminate_front(VertexId i, VertexId j);
  /// c_ki += c_kj * c_ji for all predecessors i of j; removes j -> k. Nothing without that edge.
  void eliminate_back(VertexId j, VertexId k);

  const CompGraph& graph() const { return graph_; }
  const EliminationStatistics& statistics() const { return statistics_; }

 private:
  void multiply_all(VertexId j, std::vector<EdgeId> pre, std::vector<EdgeId> post);
  void remove(EdgeId edge);
  void note_peak();
  void absorb(VertexId source, VertexId destination, LocalJacobian product);
  const Shape& shape(VertexId v) const { return program_.shape(graph_.vertex(v).value); }

  Recorder& recorder_;
  const Program& program_;
  CompGraph graph_;
  EliminationStatistics statistics_;
};

}  // namespace loipe
