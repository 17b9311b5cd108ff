// SPDX-License-Identifier: Apache-2.0
#include "graph/eliminate.h"

#include <algorithm>

#include "base/check.h"
#include "jacobian/arithmetic.h"

namespace loipe {

namespace {

std::int64_t stored_elements(const LocalJacobian& jacobian) {
  std::int64_t count = 0;
  for (const Term& term : jacobian.terms) count += term.stored_elements();
  return count;
}

}  // namespace

Elimination::Elimination(Recorder& recorder, const Program& program, CompGraph graph)
    : recorder_(recorder), program_(program), graph_(std::move(graph)) {
  for (VertexId v = 0; v < graph_.vertex_count(); ++v)
    for (EdgeId e : graph_.in_edges(v)) statistics_.live_elements += stored_elements(graph_.edge(e).jacobian);
  statistics_.peak_elements = statistics_.live_elements;
}

void Elimination::absorb(VertexId source, VertexId destination, LocalJacobian product) {
  ++statistics_.products;
  if (product.is_zero()) return;
  if (auto edge = graph_.find_edge(source, destination)) {
    ++statistics_.absorptions;
    LocalJacobian& sum = graph_.jacobian(*edge);
    statistics_.live_elements -= stored_elements(sum);
    add(recorder_, sum, product, shape(destination), shape(source));
    statistics_.live_elements += stored_elements(sum);
    if (sum.is_zero()) graph_.remove_edge(*edge);
  } else {
    ++statistics_.fill_ins;
    statistics_.live_elements += stored_elements(product);
    graph_.add_edge(source, destination, std::move(product));
  }
}

/// The products of some edges into j with some edges out of it.
void Elimination::multiply_all(VertexId j, std::vector<EdgeId> pre, std::vector<EdgeId> post) {
  require(graph_.vertex(j).kind == VertexKind::intermediate, "only intermediate vertices are eliminated");
  // Sorted: the order of the recorded products depends on the graph alone.
  std::ranges::sort(pre, {}, [&](EdgeId e) { return graph_.edge(e).source; });
  std::ranges::sort(post, {}, [&](EdgeId e) { return graph_.edge(e).destination; });
  for (EdgeId kj : post)
    for (EdgeId ji : pre) {
      const VertexId k = graph_.edge(kj).destination, i = graph_.edge(ji).source;
      absorb(i, k,
             multiply(recorder_, graph_.edge(kj).jacobian, graph_.edge(ji).jacobian,
                      {shape(k), shape(j), shape(i)}));
    }
}

void Elimination::remove(EdgeId edge) {
  statistics_.live_elements -= stored_elements(graph_.edge(edge).jacobian);
  graph_.remove_edge(edge);
}

void Elimination::note_peak() {
  statistics_.peak_elements = std::max(statistics_.peak_elements, statistics_.live_elements);
}

void Elimination::eliminate_vertex(VertexId j) {
  const std::vector<EdgeId> pre(graph_.in_edges(j).begin(), graph_.in_edges(j).end());
  const std::vector<EdgeId> post(graph_.out_edges(j).begin(), graph_.out_edges(j).end());
  multiply_all(j, pre, post);
  for (const auto* edges : {&pre, &post})
    for (EdgeId e : *edges) remove(e);
  note_peak();
}

void Elimination::eliminate_front(VertexId i, VertexId j) {
  const auto edge = graph_.find_edge(i, j);
  if (!edge) return;
  multiply_all(j, {*edge}, {graph_.out_edges(j).begin(), graph_.out_edges(j).end()});
  remove(*edge);
  note_peak();
}

void Elimination::eliminate_back(VertexId j, VertexId k) {
  const auto edge = graph_.find_edge(j, k);
  if (!edge) return;
  multiply_all(j, {graph_.in_edges(j).begin(), graph_.in_edges(j).end()}, {*edge});
  remove(*edge);
  note_peak();
}

}  // namespace loipe
