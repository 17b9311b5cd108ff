// SPDX-License-Identifier: Apache-2.0
#include "graph/comp_graph.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "ir/op_def.h"

namespace loipe {

VertexId CompGraph::add_vertex(const Vertex& vertex) {
  const auto id = static_cast<VertexId>(vertices_.size());
  vertices_.push_back(vertex);
  in_.emplace_back();
  out_.emplace_back();
  if (vertex.kind == VertexKind::independent) independents_.push_back(id);
  return id;
}

EdgeId CompGraph::add_edge(VertexId source, VertexId destination, LocalJacobian jacobian) {
  EdgeId id;
  if (free_.empty()) {
    id = static_cast<EdgeId>(edges_.size());
    edges_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  edges_[id] = {{source, destination, std::move(jacobian)},
                static_cast<std::uint32_t>(in_[destination].size()),
                static_cast<std::uint32_t>(out_[source].size())};
  in_[destination].push_back(id);
  out_[source].push_back(id);
  ++live_edges_;
  return id;
}

void CompGraph::remove_edge(EdgeId edge) {
  Slot& slot = edges_[edge];
  std::vector<EdgeId>& in = in_[slot.edge.destination];
  std::vector<EdgeId>& out = out_[slot.edge.source];
  in[slot.place_in] = in.back();
  edges_[in.back()].place_in = slot.place_in;
  in.pop_back();
  out[slot.place_out] = out.back();
  edges_[out.back()].place_out = slot.place_out;
  out.pop_back();
  slot.edge.jacobian = {};
  free_.push_back(edge);
  --live_edges_;
}

std::optional<EdgeId> CompGraph::find_edge(VertexId source, VertexId destination) const {
  const bool by_in = in_[destination].size() <= out_[source].size();
  for (EdgeId e : by_in ? in_[destination] : out_[source])
    if (edges_[e].edge.source == source && edges_[e].edge.destination == destination) return e;
  return std::nullopt;
}

std::vector<VertexId> CompGraph::release(std::vector<VertexId>& ends) {
  for (VertexId v : ends) vertices_[v].kind = VertexKind::intermediate;
  return std::exchange(ends, {});
}

std::vector<VertexId> CompGraph::intermediates() const {
  std::vector<VertexId> result;
  for (VertexId v = 0; v < vertices_.size(); ++v)
    if (vertices_[v].kind == VertexKind::intermediate) result.push_back(v);
  return result;
}

namespace {

std::string vertex_name(const CompGraph& graph, const Program& program, VertexId v) {
  const Vertex& vertex = graph.vertex(v);
  if (vertex.number > 0) return "v" + std::to_string(vertex.number);
  if (vertex.kind != VertexKind::dependent)
    for (std::size_t i = 0; i < program.arguments().size(); ++i)
      if (program.arguments()[i] == vertex.value) return program.argument_name(i);
  return (vertex.kind == VertexKind::independent ? "in(" : "out(") + std::to_string(v) + ")";
}

std::string vertex_label(const CompGraph& graph, const Program& program, VertexId v) {
  const Vertex& vertex = graph.vertex(v);
  std::string text = vertex_name(graph, program, v);
  if (vertex.number > 0) text += " " + std::string(program.op(vertex.value).name.value);
  return text + " " + to_string(program.type(vertex.value));
}

/// The rest of a label, its closing quote, and a fill.
std::string turn_text(const Vertex& vertex, std::span<const int> turns, int last) {
  const auto number = static_cast<std::size_t>(vertex.number);
  const int turn = number < turns.size() ? turns[number] : 0;
  if (vertex.kind != VertexKind::intermediate || turn == 0) return "\"";
  const int shade = 5 + 45 * turn / last;  // of blue, in per cent
  return "\\n#" + std::to_string(turn) + "\", style=filled, fillcolor=\"0.58 0." + (shade < 10 ? "0" : "") +
         std::to_string(shade) + " 1.0\"";
}

}  // namespace

std::string to_string(const CompGraph& graph, const Program& program) {
  std::string text;
  for (VertexId v = 0; v < graph.vertex_count(); ++v)
    for (EdgeId e : graph.in_edges(v))
      text += vertex_name(graph, program, graph.edge(e).source) + " -> " + vertex_name(graph, program, v) +
              ": " + to_string(graph.edge(e).jacobian) + "\n";
  return text;
}

std::string to_dot(const CompGraph& graph, const Program& program, std::span<const int> turns) {
  std::string text =
      "digraph \"" + program.name() + "\" {\n  rankdir=LR;\n  node [fontname=\"sans-serif\"];\n";
  const int last = turns.empty() ? 0 : *std::ranges::max_element(turns);
  for (VertexId v = 0; v < graph.vertex_count(); ++v) {
    const VertexKind kind = graph.vertex(v).kind;
    const char* shape = kind == VertexKind::independent ? "box"
                        : kind == VertexKind::dependent ? "doublecircle"
                                                        : "ellipse";
    text += "  n" + std::to_string(v) + " [shape=" + shape + ", label=\"" + vertex_label(graph, program, v) +
            turn_text(graph.vertex(v), turns, last) + "];\n";
  }
  for (VertexId v = 0; v < graph.vertex_count(); ++v)
    for (EdgeId e : graph.in_edges(v))
      text += "  n" + std::to_string(graph.edge(e).source) + " -> n" + std::to_string(v) + ";\n";
  return text + "}\n";
}

}  // namespace loipe
