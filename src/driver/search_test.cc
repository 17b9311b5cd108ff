// SPDX-License-Identifier: Apache-2.0
// Search by what is recorded and executed keeps its promises.
#include "driver/search.h"

#include <gtest/gtest.h>

#include "driver/counted_cost.h"
#include "orders/moves.h"

namespace loipe {
namespace {

const TimeConstants kConstants{.launch = 1e-7,
                               .product = 1e-11,
                               .sum = 1e-10,
                               .byte = 1e-10,
                               .division = 1e-10,
                               .function = 1e-9,
                               .scalar = 1e-9,
                               .scalar_division = 3e-9,
                               .scalar_function = 1e-8};

SubjectSearchOptions options_for(Objective objective, int threads) {
  SubjectSearchOptions options;
  options.search.budget_seconds = 0.1;
  options.search.time_limit_seconds = 100;  // a busy machine does not cut the work short
  options.search.seed = 3;
  options.search.threads = threads;
  options.objective = objective;
  options.constants = kConstants;
  return options;
}

TEST(CountedSearch, DependsOnTheSeedAndNotOnThreads) {
  for (const char* name : {"RobotArm_6DOF", "Perceptron"}) {
    const Subject subject({name, {}, {}});
    const Program program = subject.program();
    for (const Objective objective : {Objective::actual, Objective::folded, Objective::time}) {
      SCOPED_TRACE(std::string(name) + " " + to_string(objective));
      const SubjectSearch one = search_subject(subject, program, options_for(objective, 1));
      const SubjectSearch three = search_subject(subject, program, options_for(objective, 3));
      EXPECT_EQ(one.result.order, three.result.order);
      EXPECT_EQ(one.result.cost, three.result.cost);
    }
  }
}

TEST(CountedSearch, IsNeverWorseThanOrdersWithNames) {
  for (const char* name : {"HumanHeartDipole", "Encoder", "Hole"}) {
    const Subject subject({name, {}, {}});
    const Program program = subject.program();
    for (const Objective objective : {Objective::actual, Objective::folded, Objective::time}) {
      SCOPED_TRACE(std::string(name) + " " + to_string(objective));
      const CountedCost cost(subject, program, objective, kConstants);
      const SubjectSearch found = search_subject(subject, program, options_for(objective, 2));
      EXPECT_EQ(cost.of({"found", found.result.order}).cost, found.result.cost);
      for (const search::KnownOrder& known : known_orders(subject, program))
        EXPECT_LE(found.result.cost, cost.of({known.name, known.vertices}).cost) << known.name;
    }
  }
}

TEST(CountedSearch, EliminatesEdges) {
  const Subject subject({"RoeFlux_1d", {}, {}});
  const Program program = subject.program();
  SubjectSearchOptions options = options_for(Objective::actual, 2);
  options.moves = search::MoveSet::edge;
  const SubjectSearch found = search_subject(subject, program, options);
  const EliminationOrder order{"found", {}, found.result.moves};
  EXPECT_TRUE(found.result.order.empty());
  validate_order(program, order);
  EXPECT_EQ(count_order(subject, program, order).actual_multiplications, found.result.cost);
}

/// Arrays of rank 3 have no published graph.
TEST(CountedSearch, ServesProgramsOfAnyRank) {
  const Subject subject({std::string(LOIPE_SOURCE_DIR) + "/tests/data/cli/rank3.loipe", {}, {}});
  const Program program = subject.program();
  const SubjectSearch found = search_subject(subject, program, options_for(Objective::actual, 2));
  EXPECT_EQ(found.result.order.size(), eliminable_vertices(program).size());
  EXPECT_FALSE(found.counts.published.has_value());
}

}  // namespace
}  // namespace loipe
