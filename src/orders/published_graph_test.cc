// SPDX-License-Identifier: Apache-2.0
#include "orders/published_graph.h"

#include <gtest/gtest.h>

#include "ops/emit.h"
#include "orders/published/orders.h"

namespace loipe::published {
namespace {

TEST(PublishedSpec, NumbersVerticesAndKeepsLiteralsApart) {
  Builder b;
  const Value x = b.argument("x", {DType::f64, {2, 3}});
  const Value y = b.argument("y", {DType::f64, {3}});
  const Value product = ops::dot_general(b, x, y, {1}, {0});
  const Value shifted = ops::add(b, product, 0.5);
  const Value table = b.constant(Tensor::of<double>({2}, {7, 8}));
  const Value total = ops::reduce_sum(b, ops::mul(b, table, shifted), {0});
  const GraphSpec spec = published_spec(b.finish({total, shifted}));

  EXPECT_EQ(spec.input_shapes, (std::vector<Shape>{{2, 3}, {3}}));
  EXPECT_EQ(spec.outputs, (std::vector<int>{4, 2}));
  ASSERT_EQ(spec.vertices.size(), 4U);
  EXPECT_EQ(spec.vertices[0].primitive, "dot_general");
  EXPECT_EQ(spec.vertices[0].params.contract_lhs, std::vector<int>{1});
  EXPECT_EQ(spec.vertices[0].params.contract_rhs, std::vector<int>{0});
  EXPECT_EQ(std::get<InputRef>(spec.vertices[0].operands[1]).index, 1);
  EXPECT_EQ(std::get<VertexRef>(spec.vertices[1].operands[0]).number, 1);
  EXPECT_EQ(std::get<Literal>(spec.vertices[1].operands[1]).value, 0.5);
  EXPECT_EQ(std::get<Literal>(spec.vertices[2].operands[0]).shape, Shape{2});
  EXPECT_EQ(spec.vertices[3].params.axes, std::vector<int>{0});
  EXPECT_EQ(spec.vertices[3].shape, Shape{});
}

TEST(PublishedSpec, OpsHaveTheirJaxNames) {
  Builder b;
  const Value x = b.argument("x", {DType::f64, {}});
  const Value chosen = ops::select(b, ops::gt(b, x, 0.0), 1.0, x);
  const GraphSpec spec = published_spec(b.finish({ops::stop_gradient(b, chosen)}));
  EXPECT_EQ(spec.vertices[0].primitive, "gt");
  EXPECT_EQ(spec.vertices[1].primitive, "select_n");
  EXPECT_EQ(spec.vertices[2].primitive, "stop_gradient");
}

TEST(PublishedSpec, LeavesOutOutputsThatAreNoVertices) {
  Builder b;
  const Value x = b.argument("x", {DType::f64, {}});
  const Value y = ops::exp(b, x);
  const GraphSpec spec = published_spec(b.finish({x, y, b.scalar(1, DType::f64), y}));
  EXPECT_EQ(spec.outputs, (std::vector<int>{1, 1}));
  EXPECT_TRUE(eliminable(build_graph(spec)).empty());
}

}  // namespace
}  // namespace loipe::published
