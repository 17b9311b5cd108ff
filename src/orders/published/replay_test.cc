// SPDX-License-Identifier: Apache-2.0
// The published counts, replayed.
#include <gtest/gtest.h>

#include "orders/published/markowitz.h"
#include "orders/published/orders.h"
#include "orders/published/test_data.h"

namespace loipe::published {
namespace {

using test::all_graphs;
using test::all_orders;
using test::count_of;
using test::graph_of;
using test::vertices_of;

TEST(PublishedReplay, ForwardReverseAndMarkowitzCountsOfEveryGraph) {
  int checked = 0;
  for (const auto& [task, json] : all_graphs().items()) {
    if (!json.contains("counts")) continue;
    SCOPED_TRACE(task);
    const Graph graph = graph_of(task);
    EXPECT_EQ(count(graph, forward_order(graph)), count_of(json["counts"]["forward"]));
    EXPECT_EQ(count(graph, reverse_order(graph)), count_of(json["counts"]["reverse"]));
    EXPECT_EQ(count(graph, markowitz_order(graph)), count_of(json["counts"]["markowitz"]));
    checked += 3;
  }
  EXPECT_EQ(checked, 3 * 15);
}

TEST(PublishedReplay, MarkowitzOrdersAgreeElementByElement) {
  int checked = 0;
  for (const auto& [task, json] : all_graphs().items()) {
    if (!json.contains("markowitz")) continue;
    EXPECT_EQ(markowitz_order(graph_of(task)), vertices_of(json["markowitz"])) << task;
    ++checked;
  }
  EXPECT_EQ(checked, 15);
}

TEST(PublishedReplay, PublishedOrders) {
  int checked = 0;
  for (const auto& [task, json] : all_orders().items()) {
    const Graph graph = graph_of(task);
    const auto& best = json["alphagrad"];
    EXPECT_EQ(count(graph, vertices_of(best["order"])), count_of(best["count"])) << task;
    EXPECT_EQ(count_of(best["count"]), count_of(all_graphs()[task]["counts"]["alphagrad"]));
    ++checked;
    for (const auto& other : json["other"]) {
      EXPECT_EQ(count(graph, vertices_of(other["order"])), count_of(other["count"])) << task;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 10 + 18);
}

/// The same numbers, written out: forward, reverse, Markowitz, AlphaGrad.
TEST(PublishedReplay, TableOfTheTenTasks) {
  const std::map<std::string, std::array<std::int64_t, 4>> table = {
      {"RoeFlux_1d", {620, 364, 407, 320}},
      {"RoeFlux_3d", {1556, 979, 956, 811}},
      {"RobotArm_6DOF", {397, 301, 288, 231}},
      {"HumanHeartDipole", {240, 172, 194, 148}},
      {"PropaneCombustion", {151, 90, 111, 88}},
      {"BlackScholes_Jacobian", {545, 572, 350, 312}},
      {"g", {632, 566, 451, 417}},
      {"f", {17728, 9333, 12257, 6374}},
      {"Perceptron", {10930, 392, 4796, 389}},
      {"Encoder", {135010, 4688, 51896, 4656}},
  };
  for (const auto& [task, expected] : table) {
    SCOPED_TRACE(task);
    const Graph graph = graph_of(task);
    EXPECT_EQ(count(graph, forward_order(graph)), expected[0]);
    EXPECT_EQ(count(graph, reverse_order(graph)), expected[1]);
    EXPECT_EQ(count(graph, markowitz_order(graph)), expected[2]);
    EXPECT_EQ(count(graph, vertices_of(all_orders()[task]["alphagrad"]["order"])), expected[3]);
  }
}

/// Without the naming defect of the reference graph builder.
TEST(PublishedReplay, CorrectedBlackScholes) {
  const auto& json = all_graphs()["BlackScholes_Jacobian"];
  const Graph graph = build_graph(test::spec_of("BlackScholes_Jacobian"));
  EXPECT_EQ(count(graph, forward_order(graph)), 582);
  EXPECT_EQ(count(graph, reverse_order(graph)), 501);
  EXPECT_EQ(markowitz_order(graph), vertices_of(json["markowitz_without_alias"]));
  EXPECT_EQ(count(graph, markowitz_order(graph)), 350);
  EXPECT_EQ(count(graph, vertices_of(json["markowitz"])), 356);
  EXPECT_EQ(count(graph, vertices_of(all_orders()["BlackScholes_Jacobian"]["alphagrad"]["order"])), 329);
}

/// Correct tables change one of the published counts at published shapes.
TEST(PublishedReplay, CleanRulesChangeOnlyTheAlphaGradOrderOfF) {
  for (const auto& [task, json] : all_orders().items()) {
    SCOPED_TRACE(task);
    const Graph graph = graph_of(task);
    const auto& counts = all_graphs()[task]["counts"];
    const auto clean = [&graph = graph](const std::vector<int>& order) {
      return count(graph, order, RuleSet::clean);
    };
    EXPECT_EQ(clean(forward_order(graph)), count_of(counts["forward"]));
    EXPECT_EQ(clean(reverse_order(graph)), count_of(counts["reverse"]));
    EXPECT_EQ(clean(vertices_of(all_graphs()[task]["markowitz"])), count_of(counts["markowitz"]));
    EXPECT_EQ(clean(vertices_of(json["alphagrad"]["order"])),
              task == "f" ? 6566 : count_of(counts["alphagrad"]));
  }
}

/// Graphs with outputs that are also used.
TEST(PublishedReplay, KerrSennAndLighthouse) {
  const Graph metric = graph_of("KerrSenn");
  EXPECT_EQ(count(metric, forward_order(metric)), 45);
  EXPECT_EQ(count(metric, reverse_order(metric)), 65);
  const Graph lighthouse = graph_of("Lighthouse");
  EXPECT_EQ(count(lighthouse, forward_order(lighthouse)), 22);
  EXPECT_EQ(count(lighthouse, reverse_order(lighthouse)), 24);
}

}  // namespace
}  // namespace loipe::published
