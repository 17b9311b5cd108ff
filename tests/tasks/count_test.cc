// SPDX-License-Identifier: Apache-2.0
// The published numbers of multiplications, from the traced programs.
#include <gtest/gtest.h>

#include "orders/published/markowitz.h"
#include "orders/published/orders.h"
#include "orders/published/test_data.h"
#include "orders/published_graph.h"
#include "tasks/task.h"

namespace loipe {
namespace {

using namespace published;
using published::test::all_graphs;
using published::test::all_orders;
using published::test::count_of;
using published::test::vertices_of;

Graph graph_of(const std::string& task, const TaskOptions& options, bool alias = true) {
  return build_graph(published_spec(find_task(task).build(options)), {.drop_variable_alias = alias});
}

std::vector<int> alphagrad_order(const std::string& task) {
  return vertices_of(all_orders()[task]["alphagrad"]["order"]);
}

TEST(TaskCounts, ForwardReverseAndMarkowitz) {
  int checked = 0;
  for (const auto& [task, json] : all_graphs().items()) {
    if (!json.contains("counts")) continue;
    SCOPED_TRACE(task);
    const Graph graph = graph_of(task, {});
    EXPECT_EQ(count(graph, forward_order(graph)), count_of(json["counts"]["forward"]));
    EXPECT_EQ(count(graph, reverse_order(graph)), count_of(json["counts"]["reverse"]));
    EXPECT_EQ(markowitz_order(graph), vertices_of(json["markowitz"]));
    EXPECT_EQ(count(graph, markowitz_order(graph)), count_of(json["counts"]["markowitz"]));
    ++checked;
  }
  EXPECT_EQ(checked, 15);
}

TEST(TaskCounts, PublishedOrders) {
  int checked = 0;
  for (const auto& [task, json] : all_orders().items()) {
    EXPECT_EQ(count(graph_of(task, {}), alphagrad_order(task)), count_of(json["alphagrad"]["count"])) << task;
    ++checked;
  }
  EXPECT_EQ(checked, 10);
}

/// An output that is also used costs its copy.
TEST(TaskCounts, OutputsThatAreUsed) {
  const Graph metric = graph_of("KerrSenn", {});
  EXPECT_EQ(count(metric, forward_order(metric)), 45);
  EXPECT_EQ(count(metric, reverse_order(metric)), 65);
  const Graph quay = graph_of("Lighthouse", {});
  EXPECT_EQ(count(quay, forward_order(quay)), 22);
  EXPECT_EQ(count(quay, reverse_order(quay)), 24);
}

/// By hand, in reverse: the two edges into the last product 4 + 4, the logarithm 4, the
/// two edges into the quotient 4 + 4, then 1, 1, and the gradient of the first sum 4.
TEST(TaskCounts, FreeEnergy) {
  const Graph graph = graph_of("FreeEnergy", {});
  EXPECT_EQ(count(graph, reverse_order(graph)), 26);
}

/// Without the naming defect of the reference graph builder.
TEST(TaskCounts, CorrectedBlackScholes) {
  const Graph graph = graph_of("BlackScholes_Jacobian", {}, false);
  EXPECT_EQ(count(graph, forward_order(graph)), 582);
  EXPECT_EQ(count(graph, reverse_order(graph)), 501);
  EXPECT_EQ(count(graph, markowitz_order(graph)), 350);
  EXPECT_EQ(count(graph, alphagrad_order("BlackScholes_Jacobian")), 329);
}

TEST(TaskCounts, EncoderAtScale16) {
  const Graph graph = graph_of("Encoder", {.scale = 16});
  EXPECT_EQ(count(graph, reverse_order(graph)), 191'418'368);
  EXPECT_EQ(count(graph, alphagrad_order("Encoder")), 189'559'296);
  EXPECT_EQ(count(graph, forward_order(graph)), 53'559'605'920);
  EXPECT_EQ(count(graph, vertices_of(all_graphs()["Encoder"]["markowitz"])), 562'925'822'336);
}

TEST(TaskCounts, PerceptronAtScale16AndBatch512) {
  const Graph graph = graph_of("Perceptron", {.scale = 16, .batch = 512});
  EXPECT_EQ(count(graph, forward_order(graph)), 180'937'827'328);
  EXPECT_EQ(count(graph, reverse_order(graph)), 18'253'824);
  EXPECT_EQ(count(graph, alphagrad_order("Perceptron")), 18'221'568);
  EXPECT_EQ(count(graph, vertices_of(all_graphs()["Perceptron"]["markowitz"])), 2'790'031'488);
}

}  // namespace
}  // namespace loipe
