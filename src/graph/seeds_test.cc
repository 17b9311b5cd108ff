// SPDX-License-Identifier: Apache-2.0
#include "graph/seeds.h"

#include <gtest/gtest.h>

#include "graph/eliminate.h"
#include "graph/linearize.h"
#include "jacobian/rules.h"
#include "ops/emit.h"

namespace loipe {
namespace {

/// y = exp(sin(x)) of ten numbers, with one seed before x.
struct Seeded {
  Builder builder{"seeded"};
  Value x = builder.argument("x", {DType::f64, {10}});
  Value scale = builder.argument("scale", {DType::f64, {10}});
  Program program;

  Seeded() {
    const Value y = ops::exp(builder, ops::sin(builder, x));
    program = Builder(builder.program()).finish({y});
  }

  /// dy/dt and what the elimination cost.
  std::pair<LocalJacobian, ActualCost> eliminated(const TermDraft& seed) {
    Recorder recorder(builder);
    CompGraph graph = linearize(recorder, program, {0});
    std::vector<LocalJacobian> seeds{seed.finish(builder)};
    const std::vector<VertexId> seeded = seed_independents(graph, x, std::move(seeds));
    EXPECT_EQ(seeded.size(), 1u);
    Elimination elimination(recorder, builder.program(), graph);
    for (VertexId v : graph.intermediates()) elimination.eliminate_vertex(v);
    const CompGraph& result = elimination.graph();
    EXPECT_EQ(result.edge_count(), 1u);
    const auto edge = result.find_edge(result.independents()[0], result.dependents()[0]);
    return {result.edge(*edge).jacobian, recorder.cost()};
  }
};

TEST(Seeds, AnIdentityCostsNothingAndStaysADiagonal) {
  Seeded s;
  TermDraft identity;
  const Label a = identity.label(10);
  identity.out({a}).in({a});
  const auto [jacobian, cost] = s.eliminated(identity);
  EXPECT_EQ(jacobian.terms.size(), 1u);
  EXPECT_EQ(jacobian.terms[0].extents, std::vector<std::int64_t>{10});
  EXPECT_EQ(cost.multiplications, 10);  // cos(sin) times exp, as without a seed
}

TEST(Seeds, ADiagonalScalesColumnsAndStaysADiagonal) {
  Seeded s;
  TermDraft diagonal;
  const Label a = diagonal.label(10);
  diagonal.out({a}).in({a}).value(s.scale, {a});
  const auto [jacobian, cost] = s.eliminated(diagonal);
  EXPECT_EQ(jacobian.terms.size(), 1u);
  EXPECT_EQ(jacobian.terms[0].stored_elements(), 10);
  EXPECT_EQ(cost.multiplications, 20);
}

TEST(Seeds, ZeroSeedsLeaveNoEdge) {
  Seeded s;
  Recorder recorder(s.builder);
  CompGraph graph = linearize(recorder, s.program, {0});
  seed_dependents(graph, s.x, {LocalJacobian::zero()});
  EXPECT_TRUE(graph.in_edges(graph.dependents()[0]).empty());
  EXPECT_EQ(graph.intermediates().size(), 2u);  // sin(x), and exp(sin(x)), which was the output
}

}  // namespace
}  // namespace loipe
