// SPDX-License-Identifier: Apache-2.0
#include "orders/published/graph.h"

#include <loipe/error.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "orders/published/primitive_rules.h"

namespace loipe::published {
namespace {

/// The node of each operand, nothing for a literal.
class Resolver {
 public:
  explicit Resolver(const GraphSpec& spec) : spec_(spec) {}

  /// `reader` is the number of the vertex whose operand this is.
  std::optional<int> node(const Operand& operand, int reader) const {
    if (const auto* input = std::get_if<InputRef>(&operand)) {
      check(input->index, 0, input_count() - 1, "input", reader);
      return input->index;
    }
    if (const auto* vertex = std::get_if<VertexRef>(&operand)) {
      check(vertex->number, 1, reader - 1, "earlier vertex", reader);
      return input_count() + vertex->number - 1;
    }
    return std::nullopt;
  }

  /// Call after `node`, which checks the reference.
  const Shape& shape(const Operand& operand) const {
    if (const auto* input = std::get_if<InputRef>(&operand)) {
      return spec_.input_shapes[static_cast<std::size_t>(input->index)];
    }
    if (const auto* vertex = std::get_if<VertexRef>(&operand)) {
      return spec_.vertices[static_cast<std::size_t>(vertex->number - 1)].shape;
    }
    return std::get<Literal>(operand).shape;
  }

 private:
  int input_count() const { return static_cast<int>(spec_.input_shapes.size()); }

  static void check(int value, int low, int high, const char* what, int reader) {
    if (value >= low && value <= high) return;
    throw UserError("vertex " + std::to_string(reader) + " reads " + what + " " + std::to_string(value) +
                    ", which does not exist");
  }

  const GraphSpec& spec_;
};

/// How often each vertex is an operand.
std::vector<int> use_counts(const GraphSpec& spec) {
  std::vector<int> uses(spec.vertices.size(), 0);
  for (const VertexSpec& vertex : spec.vertices) {
    for (const Operand& operand : vertex.operands) {
      const auto* used = std::get_if<VertexRef>(&operand);
      if (used != nullptr) ++uses[static_cast<std::size_t>(used->number - 1)];
    }
  }
  return uses;
}

std::vector<bool> output_flags(const GraphSpec& spec) {
  std::vector<bool> is_output(spec.vertices.size(), false);
  for (const int output : spec.outputs) {
    if (output < 1 || output > static_cast<int>(spec.vertices.size())) {
      throw UserError("output " + std::to_string(output) + " is no vertex; vertices are 1 to " +
                      std::to_string(spec.vertices.size()));
    }
    is_output[static_cast<std::size_t>(output - 1)] = true;
  }
  return is_output;
}

using EdgeMap = std::map<std::pair<int, int>, Edge>;  // keyed by (destination, source)

bool has_unit_partials(const VertexSpec& vertex) {
  constexpr std::string_view kUnits[] = {"add", "sub", "neg", "add_any"};
  return std::ranges::find(kUnits, vertex.primitive) != std::end(kUnits);
}

/// The type with every diagonal replaced by a delta.
EdgeType without_values(const Edge& edge) {
  if (edge.extents == Extents{1, 1, 1, 1} && edge.type == EdgeType::dense) return EdgeType::identity;
  if (!has_structure(edge.type)) return edge.type;
  Structure structure = structure_of(edge.type);
  for (auto& row : structure.ties)
    for (Tie& tie : row)
      if (tie == Tie::diagonal) tie = Tie::delta;
  structure.has_scalar = false;
  return type_of(structure);
}

EdgeMap edges_of_vertices(const GraphSpec& spec, bool unit_partials) {
  const Resolver resolver(spec);
  const int input_count = static_cast<int>(spec.input_shapes.size());
  EdgeMap edges;
  int number = 0;
  for (const VertexSpec& vertex : spec.vertices) {
    ++number;
    std::vector<std::optional<int>> sources;
    std::vector<Shape> shapes;
    for (const Operand& operand : vertex.operands) {
      sources.push_back(resolver.node(operand, number));
      shapes.push_back(resolver.shape(operand));
    }
    std::vector<Edge> local = local_edges(vertex, shapes);
    if (unit_partials && has_unit_partials(vertex))
      for (Edge& edge : local) edge.type = without_values(edge);
    for (std::size_t k = 0; k < local.size(); ++k) {
      if (local[k].type == EdgeType::none) continue;
      edges.insert_or_assign({input_count + number - 1, sources[k].value()}, local[k]);
    }
  }
  return edges;
}

/// See BuildOptions. The edge that is written last wins.
EdgeMap with_drop_variable_alias(const EdgeMap& edges, int input_count, const std::vector<int>& uses,
                                 const std::vector<bool>& outputs) {
  int first_unused = -1;
  EdgeMap aliased;
  for (std::size_t v = 0; v < uses.size(); ++v) {
    const int node = input_count + static_cast<int>(v);
    const bool is_unused = uses[v] == 0 && !outputs[v];
    if (is_unused && first_unused < 0) first_unused = node;
    const int column = is_unused ? first_unused : node;
    for (auto it = edges.lower_bound({node, 0}); it != edges.end() && it->first.first == node; ++it) {
      aliased.insert_or_assign({column, it->first.second}, it->second);
    }
  }
  return aliased;
}

/// The edge from a used output to its copy.
Edge copy_edge(const VertexSpec& vertex) {
  const VertexSpec unary{"copy_of_output", {InputRef{0}}, vertex.shape};
  Edge edge = local_edges(unary, {{vertex.shape}}).front();
  edge.type = EdgeType::delta_00_diagonal_11;
  return edge;
}

}  // namespace

Graph build_graph(const GraphSpec& spec, BuildOptions options) {
  EdgeMap edges = edges_of_vertices(spec, options.unit_partials);
  const std::vector<int> uses = use_counts(spec);
  const std::vector<bool> outputs = output_flags(spec);
  Graph graph;
  graph.input_count_ = static_cast<int>(spec.input_shapes.size());
  if (options.drop_variable_alias) {
    edges = with_drop_variable_alias(edges, graph.input_count_, uses, outputs);
  }
  graph.is_pure_output_.resize(spec.vertices.size());
  for (std::size_t v = 0; v < uses.size(); ++v) {
    graph.is_pure_output_[v] = outputs[v] && uses[v] == 0;
  }
  for (const int output : spec.outputs) {
    const auto v = static_cast<std::size_t>(output - 1);
    if (uses[v] == 0) continue;
    const int copy = graph.node_count();
    ++graph.copy_count_;
    edges[{copy, graph.node_of_vertex(output)}] = copy_edge(spec.vertices[v]);
  }
  graph.edges_.reserve(edges.size());
  for (const auto& [ends, edge] : edges) graph.edges_.push_back({ends.second, ends.first, edge});
  return graph;
}

}  // namespace loipe::published
