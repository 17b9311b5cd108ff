// SPDX-License-Identifier: Apache-2.0
// Laws of elimination on random graphs, and what the order functions refuse.
#include <gtest/gtest.h>
#include <loipe/error.h>

#include <algorithm>
#include <random>
#include <set>

#include "orders/published/markowitz.h"
#include "orders/published/orders.h"
#include "orders/published/state.h"

namespace loipe::published {
namespace {

constexpr unsigned kFirstSeed = 20240607;
constexpr unsigned kGraphs = 100;

int pick(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

/// Elementwise vertices over random earlier values, all of one shape, with the
/// last three vertices as outputs.
GraphSpec random_spec(std::mt19937& random, const Shape& shape) {
  const int inputs = pick(random, 1, 4);
  const int vertices = pick(random, 4, 25);
  GraphSpec spec;
  spec.input_shapes.assign(static_cast<std::size_t>(inputs), shape);
  for (int number = 1; number <= vertices; ++number) {
    VertexSpec vertex{"add", {}, shape};
    for (int k = pick(random, 1, 2); k > 0; --k) {
      const int source = pick(random, 0, inputs + number - 2);
      if (source < inputs) vertex.operands.emplace_back(InputRef{source});
      else vertex.operands.emplace_back(VertexRef{source - inputs + 1});
    }
    if (vertex.operands.size() == 1) vertex.primitive = "exp";
    spec.vertices.push_back(vertex);
  }
  for (int k = 0; k < 3; ++k) spec.outputs.push_back(vertices - k);
  return spec;
}

std::vector<int> random_order(const Graph& graph, std::mt19937& random) {
  std::vector<int> order = eliminable(graph);
  std::ranges::shuffle(order, random);
  return order;
}

/// Vertex elimination on plain sets, costing indegree times outdegree.
std::int64_t naive_scalar_count(const Graph& graph, const std::vector<int>& order) {
  std::set<std::pair<int, int>> edges;
  for (const GraphEdge& edge : graph.edges()) edges.emplace(edge.source, edge.destination);
  std::int64_t total = 0;
  for (const int vertex : order) {
    const int j = graph.node_of_vertex(vertex);
    std::vector<int> before;
    std::vector<int> after;
    for (const auto& [source, destination] : edges) {
      if (destination == j) before.push_back(source);
      if (source == j) after.push_back(destination);
    }
    total += static_cast<std::int64_t>(before.size() * after.size());
    std::erase_if(edges, [j](const auto& edge) { return edge.first == j || edge.second == j; });
    for (const int i : before) {
      for (const int k : after) edges.emplace(i, k);
    }
  }
  return total;
}

TEST(PublishedRandomScalarGraph, CostIsIndegreeTimesOutdegree) {
  for (unsigned seed = kFirstSeed; seed < kFirstSeed + kGraphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const Graph graph = build_graph(random_spec(random, {}));
    for (const auto& order :
         {random_order(graph, random), forward_order(graph), reverse_order(graph), markowitz_order(graph)}) {
      EXPECT_EQ(count(graph, order), naive_scalar_count(graph, order));
    }
  }
}

/// With no vertex left every edge joins an input to an output, whatever the
/// order; on scalar graphs that determines the edges themselves.
TEST(PublishedRandomScalarGraph, EveryOrderLeavesTheSameEdges) {
  for (unsigned seed = kFirstSeed; seed < kFirstSeed + kGraphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const Graph graph = build_graph(random_spec(random, {}));
    const auto remaining = [&graph](const std::vector<int>& order) {
      State state(graph);
      for (const int vertex : order) state.eliminate(vertex);
      std::set<std::pair<int, int>> edges;
      for (int source = 0; source < graph.node_count(); ++source) {
        for (int k = graph.input_count(); k < graph.node_count(); ++k) {
          if (state.edge(source, k).type != EdgeType::none) edges.emplace(source, k);
        }
      }
      return edges;
    };
    const auto expected = remaining(forward_order(graph));
    for (const auto& [source, k] : expected) EXPECT_LT(source, graph.input_count());
    EXPECT_EQ(remaining(random_order(graph, random)), expected);
  }
}

/// An elementwise matrix graph is one scalar graph per entry.
TEST(PublishedRandomMatrixGraph, ElementwiseCostIsPerEntry) {
  for (unsigned seed = kFirstSeed; seed < kFirstSeed + kGraphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    GraphSpec spec = random_spec(random, {3, 5});
    for (const int output : spec.outputs) {  // a copy's edge is no full diagonal
      for (VertexSpec& vertex : spec.vertices) {
        std::erase_if(vertex.operands, [output](const Operand& operand) {
          const auto* used = std::get_if<VertexRef>(&operand);
          return used != nullptr && used->number == output;
        });
      }
    }
    const Graph graph = build_graph(spec);
    const std::vector<int> order = random_order(graph, random);
    EXPECT_EQ(count(graph, order), 15 * naive_scalar_count(graph, order));
  }
}

TEST(PublishedState, CostPredictsElimination) {
  std::mt19937 random(kFirstSeed);
  const Graph graph = build_graph(random_spec(random, {4}));
  State state(graph);
  for (const int vertex : random_order(graph, random)) {
    EXPECT_TRUE(state.is_eliminable(vertex));
    const std::int64_t predicted = state.cost(vertex);
    EXPECT_EQ(state.eliminate(vertex), predicted);
    EXPECT_FALSE(state.is_eliminable(vertex));
    EXPECT_TRUE(state.predecessors(vertex).empty());
    EXPECT_TRUE(state.successors(vertex).empty());
  }
}

/// A chain of three vertices; the last is the output.
const GraphSpec kChain{
    {{}}, {{"exp", {InputRef{0}}, {}}, {"sin", {VertexRef{1}}, {}}, {"cos", {VertexRef{2}}, {}}}, {3}};

std::string message_of(const std::vector<int>& order) {
  try {
    validate_order(build_graph(kChain), order);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(PublishedValidateOrder, NamesTheOffenders) {
  EXPECT_EQ(message_of({2, 1}), "");
  EXPECT_NE(message_of({2}).find("missing 1;"), std::string::npos);
  EXPECT_NE(message_of({2, 1, 2}).find("repeated 2;"), std::string::npos);
  EXPECT_NE(message_of({2, 1, 3, 0, 9}).find("not eliminable 3, 0, 9;"), std::string::npos);
  EXPECT_THROW(count(build_graph(kChain), std::vector<int>{1}), UserError);
}

TEST(PublishedState, RefusesWhatCannotBeEliminated) {
  State state(build_graph(kChain));
  EXPECT_THROW(state.eliminate(0), UserError);
  EXPECT_THROW(state.eliminate(3), UserError);
  EXPECT_THROW(state.eliminate(4), UserError);
  EXPECT_EQ(state.eliminate(1), 1);
  EXPECT_THROW(state.eliminate(1), UserError);
  EXPECT_THROW(state.cost(1), UserError);
}

}  // namespace
}  // namespace loipe::published
