// SPDX-License-Identifier: Apache-2.0
#include "orders/published/graph.h"

#include <gtest/gtest.h>
#include <loipe/error.h>

#include <algorithm>

#include "orders/published/test_data.h"

namespace loipe::published {
namespace {

using Row = std::vector<int>;  // source and destination node, type, o0, o1, i0, i1

std::vector<Row> rows_of(const Graph& graph) {
  std::vector<Row> rows;
  for (const auto& [source, destination, edge] : graph.edges()) {
    const auto& [o0, o1, i0, i1] = edge.extents;
    rows.push_back({source, destination, code(edge.type), o0, o1, i0, i1});
  }
  std::ranges::sort(rows);
  return rows;
}

std::vector<Row> published_rows(const test::Json& edges, int input_count) {
  const auto node = [input_count](const test::Json& json) {
    const auto text = json.get<std::string>();
    const int number = std::stoi(text.substr(1)) - 1;
    return text[0] == 'x' ? number : input_count + number;
  };
  std::vector<Row> rows;
  for (const test::Json& edge : edges) {
    Row row = {node(edge[0]), node(edge[1])};
    for (std::size_t k = 2; k < edge.size(); ++k) row.push_back(edge[k].get<int>());
    rows.push_back(row);
  }
  std::ranges::sort(rows);
  return rows;
}

TEST(PublishedGraph, DerivesEveryPublishedEdge) {
  std::size_t checked = 0;
  for (const std::string& task : test::task_names(test::all_graphs())) {
    SCOPED_TRACE(task);
    const test::Json& json = test::all_graphs()[task];
    if (!json.contains("edges")) continue;
    const Graph graph = test::graph_of(task);
    const auto derived = rows_of(graph);
    const auto published = published_rows(json["edges"], graph.input_count());
    EXPECT_EQ(derived.size(), published.size());
    for (std::size_t k = 0; k < std::min(derived.size(), published.size()); ++k) {
      EXPECT_EQ(derived[k], published[k]) << "edge " << k;
    }
    checked += derived.size();
  }
  EXPECT_EQ(checked, 1746U);
}

TEST(PublishedGraph, OnlyBlackScholesHasTwoUnusedVertices) {
  for (const std::string& task : test::task_names(test::all_graphs())) {
    const GraphSpec spec = test::spec_of(task);
    const bool same = std::ranges::equal(build_graph(spec).edges(), build_graph(spec, {true}).edges());
    EXPECT_EQ(same, task != "BlackScholes_Jacobian") << task;
  }
}

/// An output that is used keeps its vertex and gets a copy.
TEST(PublishedGraph, CopiesUsedOutputs) {
  const Graph graph = test::graph_of("Lighthouse");
  EXPECT_EQ(graph.copy_count(), 1);
  EXPECT_FALSE(graph.is_pure_output(7));
  EXPECT_TRUE(graph.is_pure_output(8));
  const GraphEdge& copy = graph.edges().back();
  EXPECT_EQ(copy.source, graph.node_of_vertex(7));
  EXPECT_EQ(copy.destination, graph.node_count() - 1);
  EXPECT_EQ(copy.edge, (Edge{EdgeType::delta_00_diagonal_11, {1, 1, 1, 1}}));
}

Edge single_edge(const VertexSpec& vertex, const std::vector<Shape>& inputs) {
  const Graph graph = build_graph({inputs, {vertex}, {1}});
  EXPECT_EQ(graph.edges().size(), 1U);
  return graph.edges().empty() ? Edge{} : graph.edges().front().edge;
}

TEST(PublishedGraph, OperandUsedTwiceHasOneEdge) {
  const Edge square = single_edge({"mul", {InputRef{0}, InputRef{0}}, {3}}, {{3}});
  EXPECT_EQ(square, (Edge{EdgeType::diagonal_00, {3, 1, 3, 1}}));
}

TEST(PublishedGraph, LastPlaceWinsInAProductWithItself) {
  VertexSpec gram{"dot_general", {InputRef{0}, InputRef{0}}, {3, 3}};
  gram.params.contract_lhs = {1};
  gram.params.contract_rhs = {1};
  EXPECT_EQ(single_edge(gram, {{3, 5}}), (Edge{EdgeType::delta_10, {3, 3, 3, 5}}));
}

TEST(PublishedGraph, ConstantsHaveNoEdge) {
  const GraphSpec spec{{{2, 2}},
                       {{"stop_gradient", {InputRef{0}}, {2, 2}},
                        {"broadcast_in_dim", {Literal{0.0}}, {2}},
                        {"iota", {}, {2}}},
                       {1}};
  EXPECT_TRUE(build_graph(spec).edges().empty());
}

TEST(PublishedGraph, UnknownPrimitivesAreElementwise) {
  const Edge unary = single_edge({"bessel_j1", {InputRef{0}}, {4, 2}}, {{4, 2}});
  EXPECT_EQ(unary.type, EdgeType::diagonal_00_diagonal_11);
  const Edge chosen =
      single_edge({"select_n", {Literal{1.0, {4, 2}}, InputRef{0}, Literal{}}, {4, 2}}, {{4, 2}});
  EXPECT_EQ(chosen.type, EdgeType::diagonal_00_diagonal_11);
}

TEST(PublishedGraph, RefusesWhatDoesNotExist) {
  EXPECT_THROW(build_graph({{{}}, {{"neg", {InputRef{1}}, {}}}, {1}}), UserError);
  EXPECT_THROW(build_graph({{{}}, {{"neg", {VertexRef{1}}, {}}}, {1}}), UserError);
  EXPECT_THROW(build_graph({{{}}, {{"neg", {VertexRef{0}}, {}}}, {1}}), UserError);
  EXPECT_THROW(build_graph({{{}}, {{"neg", {InputRef{0}}, {}}}, {2}}), UserError);
  EXPECT_THROW(build_graph({{{2, 2}}, {{"dot_general", {InputRef{0}}, {}}}, {1}}), UserError);
}

TEST(PublishedGraph, RefusesRankAboveTwo) {
  EXPECT_THROW(build_graph({{{2, 3, 4}}, {{"neg", {InputRef{0}}, {2, 3, 4}}}, {1}}), Unsupported);
  EXPECT_THROW(build_graph({{{0}}, {{"neg", {InputRef{0}}, {0}}}, {1}}), Unsupported);
  EXPECT_NO_THROW(build_graph({{{1, 1, 1}}, {{"neg", {InputRef{0}}, {1, 1, 1}}}, {1}}));
}

}  // namespace
}  // namespace loipe::published
