// SPDX-License-Identifier: Apache-2.0
// The shipped orders, counted again by what is recorded and executed.
#include "orders/best_orders.h"

#include <gtest/gtest.h>

#include "driver/counted_cost.h"

namespace loipe {
namespace {

constexpr std::string_view kFunctions[] = {"RoeFlux_1d",
                                           "RoeFlux_3d",
                                           "RobotArm_6DOF",
                                           "HumanHeartDipole",
                                           "PropaneCombustion",
                                           "BlackScholes_Jacobian",
                                           "g",
                                           "f",
                                           "Perceptron",
                                           "Encoder",
                                           "EncoderDecoder"};

Subject subject_of(const BestOrder& best) {
  SubjectRequest request{std::string(best.task), {}, {}};
  if (best.scale > 1) request.scale = best.scale;
  if (best.batch > 1) request.batch = best.batch;
  return Subject(request);
}

TEST(BestOrders, ExistForWhatIsExecuted) {
  for (const std::string_view task : kFunctions)
    for (const char* objective : {"published", "actual", "folded"})
      EXPECT_NE(best_order(task, objective, 1), nullptr) << task << " " << objective;
}

/// And are no dearer than the orders that have names.
TEST(BestOrders, CostWhatTheyClaim) {
  for (const BestOrder& best : best_orders()) {
    if (best.objective == "published" || best.scale > 1) continue;
    SCOPED_TRACE(std::string(best.task) + " " + std::string(best.objective));
    const Subject subject = subject_of(best);
    const Program program = subject.program();
    const Objective objective = parse_objective(std::string(best.objective), "");
    const CountedCost cost(subject, program, objective, {});
    EXPECT_EQ(cost.of({"best", best.vertices}).cost, best.cost);
    for (const EliminationOrder& order :
         {forward_order(program), reverse_order(program), markowitz_order(program)})
      EXPECT_LE(best.cost, cost.of(order).cost) << order.name;
  }
}

TEST(BestOrders, AtLargeSizesCostWhatTheyClaim) {
  for (const BestOrder& best : best_orders()) {
    if (best.objective == "published" || best.scale == 1) continue;
    SCOPED_TRACE(std::string(best.task) + " " + std::string(best.objective));
    const Subject subject = subject_of(best);
    const Program program = subject.program();
    const Objective objective = parse_objective(std::string(best.objective), "");
    EXPECT_EQ(CountedCost(subject, program, objective, {}).of({"best", best.vertices}).cost, best.cost);
  }
}

}  // namespace
}  // namespace loipe
