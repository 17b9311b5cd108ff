// SPDX-License-Identifier: Apache-2.0
// Every traced task has the published graph, vertex by vertex and edge by edge, so
// that the published orders mean the same vertices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "orders/published/graph.h"
#include "orders/published_graph.h"
#include "program_lines.h"
#include "tasks/task.h"

namespace loipe {
namespace {

using published::test::all_graphs;
using published::test::graph_of;
using published::test::task_names;
using testing::ElementsAreArray;

const TaskOptions kPublishedSize{.dtype = DType::f64};

TEST(TaskGraph, EveryPublishedGraphIsATask) {
  const std::vector<std::string> published = task_names(all_graphs());
  EXPECT_EQ(published.size(), 17U);
  EXPECT_EQ(all_tasks().size(), published.size() + 1);  // and FreeEnergy
  for (const std::string& name : published) EXPECT_EQ(find_task(name).name, name);
}

class PublishedTask : public testing::TestWithParam<std::string> {};

TEST_P(PublishedTask, HasThePublishedVertices) {
  const Program program = find_task(GetParam()).build(kPublishedSize);
  const bool last_axis_only = GetParam() == "RoeFlux_3d";
  const auto traced = test::traced_lines(program, last_axis_only);
  const auto published = test::published_lines(GetParam());
  EXPECT_EQ(traced.size(), published.size());
  for (std::size_t k = 0; k < std::min(traced.size(), published.size()); ++k)
    ASSERT_EQ(traced[k], published[k]);
}

TEST_P(PublishedTask, HasThePublishedInputsAndOutputs) {
  const Program program = find_task(GetParam()).build(kPublishedSize);
  const auto names = test::names_and_powers()[GetParam()]["arguments"].get<std::vector<std::string>>();
  const auto shapes = all_graphs()[GetParam()]["inputs"].get<std::vector<Shape>>();
  ASSERT_EQ(program.arguments().size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(program.argument_name(i), names[i]);
    EXPECT_EQ(program.type(program.arguments()[i]), (TensorType{DType::f64, shapes[i]}));
  }
  std::vector<int> outputs;
  for (Value output : program.outputs()) outputs.push_back(program.vertex_numbers()[output.index]);
  EXPECT_THAT(outputs, ElementsAreArray(all_graphs()[GetParam()]["outputs"].get<std::vector<int>>()));
}

/// The same edges as those derived from the published vertices, which the tests of
/// orders/published compare with the published list of edges one by one.
TEST_P(PublishedTask, HasThePublishedEdges) {
  const auto spec = published::published_spec(find_task(GetParam()).build(kPublishedSize));
  const published::Graph graph = published::build_graph(spec, {.drop_variable_alias = true});
  const published::Graph expected = graph_of(GetParam());
  EXPECT_EQ(graph.copy_count(), expected.copy_count());
  EXPECT_THAT(graph.edges(), ElementsAreArray(expected.edges()));
}

/// Single precision changes constants by rounding and nothing else.
TEST_P(PublishedTask, HasTheSameGraphInSinglePrecision) {
  const Program program = find_task(GetParam()).build({});
  const Program wide = find_task(GetParam()).build(kPublishedSize);
  ASSERT_EQ(program.size(), wide.size());
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    EXPECT_EQ(&program.op(Value{i}), &wide.op(Value{i}));
    EXPECT_EQ(program.type(Value{i}), (TensorType{DType::f32, wide.shape(Value{i})}));
    EXPECT_TRUE(std::ranges::equal(program.operands(Value{i}), wide.operands(Value{i})));
  }
}

INSTANTIATE_TEST_SUITE_P(All, PublishedTask, testing::ValuesIn(task_names(all_graphs())),
                         [](const auto& task) { return task.param; });

TEST(TaskGraph, FreeEnergyIsTheSumOfHelmholtz) {
  const auto terms = test::traced_lines(find_task("Helmholtz").build(kPublishedSize), false);
  auto expected = terms;
  expected.emplace_back("7 reduce_sum v6 [] axes=[0]");
  const Program program = find_task("FreeEnergy").build(kPublishedSize);
  EXPECT_THAT(test::traced_lines(program, false), ElementsAreArray(expected));
  EXPECT_EQ(program.outputs()[0].index, program.size() - 1);
}

std::string line_at(const Program& program, std::size_t vertex) {
  return test::traced_lines(program, false)[vertex - 1];
}

/// Where the batch axis stands, as the four functions are published.
TEST(TaskGraph, BatchAxis) {
  const Program roe = find_task("RoeFlux_3d").build({.batch = 5});
  EXPECT_EQ(line_at(roe, 2), "2 sub x5,x2 [5,3]");
  EXPECT_EQ(line_at(roe, 4), "4 slice v2 [5,1] start=[0,1] limit=[5,2]");
  EXPECT_EQ(line_at(roe, 22), "22 reduce_sum v21 [5] axes=[1]");
  EXPECT_EQ(line_at(roe, 81), "81 broadcast_in_dim #0.0 [2]");
  EXPECT_EQ(line_at(roe, 82), "82 broadcast_in_dim v81 [5,2] dims=[1]");
  EXPECT_EQ(line_at(roe, 91), "91 broadcast_in_dim v90 [5,2] dims=[1]");
  EXPECT_EQ(line_at(roe, 144), "144 mul #0.5,v143 [5,3]");

  const Program greeks = find_task("BlackScholes_Jacobian").build({.batch = 5});
  EXPECT_EQ(line_at(greeks, 1), "1 mul x3,x5 [5]");
  EXPECT_EQ(line_at(greeks, 37), "37 div #0.5,v36 []");
  EXPECT_EQ(line_at(greeks, 134), "134 add v133,v119 [5]");

  EXPECT_EQ(line_at(find_task("g").build({.batch = 5}), 105), "105 add v89,v22 [5,1]");

  const Program perceptron = find_task("Perceptron").build({.scale = 2, .batch = 5});
  EXPECT_EQ(line_at(perceptron, 1), "1 dot_general x3,x1 [16,5] lhs=[1] rhs=[1]");
  EXPECT_EQ(line_at(perceptron, 2), "2 transpose v1 [5,16] perm=[1,0]");
  EXPECT_EQ(line_at(perceptron, 3), "3 broadcast_in_dim x4 [1,16] dims=[1]");
  EXPECT_EQ(line_at(perceptron, 8), "8 broadcast_in_dim v7 [5,1] dims=[0]");
  EXPECT_EQ(line_at(perceptron, 19), "19 broadcast_in_dim x7 [1,1] dims=[1]");
  EXPECT_EQ(line_at(perceptron, 23), "23 dot_general x5,v22 [8,5] lhs=[1] rhs=[1]");
  EXPECT_EQ(line_at(perceptron, 25), "25 broadcast_in_dim x6 [1,8] dims=[1]");
  EXPECT_EQ(line_at(perceptron, 39), "39 neg v38 [5]");
}

/// Above scale 1 the layer norm's parameters have shape (1), and only their
/// conversions change.
TEST(TaskGraph, ScaleKeepsTheVertices) {
  for (const char* name : {"Perceptron", "Encoder", "EncoderDecoder"}) {
    SCOPED_TRACE(name);
    const auto small = published::published_spec(find_task(name).build({}));
    const auto large = published::published_spec(find_task(name).build({.scale = 16}));
    ASSERT_EQ(small.vertices.size(), large.vertices.size());
    for (std::size_t k = 0; k < small.vertices.size(); ++k) {
      const bool converts = small.vertices[k].primitive == "convert_element_type";
      EXPECT_EQ(large.vertices[k].primitive, converts ? "broadcast_in_dim" : small.vertices[k].primitive);
      if (converts) {
        EXPECT_EQ(large.vertices[k].shape, (Shape{1, 1}));
      }
    }
  }
}

}  // namespace
}  // namespace loipe
