// SPDX-License-Identifier: Apache-2.0
// Sequential halving and completed values on bandits whose answer is known.
#include "agent/gumbel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace loipe::agent {
namespace {

TEST(SequentialHalving, ScheduleOfThePaper) {
  EXPECT_EQ(halving_schedule(4, 8), (std::vector<int>{0, 0, 0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(halving_schedule(1, 3), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(halving_schedule(8, 5), (std::vector<int>{0, 0, 0, 0, 0}));
  for (int considered : {2, 3, 5, 8, 16})
    for (int simulations : {1, 7, 16, 50}) {
      const std::vector<int> schedule = halving_schedule(considered, simulations);
      ASSERT_EQ(schedule.size(), static_cast<std::size_t>(simulations));
      EXPECT_LE(std::ranges::count(schedule, 0), considered);
    }
}

/// Costs of actions plus noise; the logits know nothing.
std::size_t chosen_by_halving(const std::vector<double>& costs, double spread, int simulations, Rng& rng) {
  std::vector<ActionStatistics> actions(costs.size());
  RootChoice choice(costs.size(), static_cast<int>(costs.size()), simulations, 0, rng);
  while (!choice.is_done()) {
    ActionStatistics& action = actions[choice.next(actions, 100)];
    ++action.visits;
    action.cost_sum += costs[static_cast<std::size_t>(&action - actions.data())] + spread * rng.normal();
  }
  return choice.best(actions, 100);
}

TEST(SequentialHalving, FindsTheBestOfABandit) {
  Rng rng(1);
  const std::vector<double> costs{105, 99, 103, 90, 101, 98, 104, 100};
  EXPECT_EQ(chosen_by_halving(costs, 0, 8, rng), 3u);
  int found = 0;
  for (int trial = 0; trial < 50; ++trial) found += chosen_by_halving(costs, 5, 96, rng) == 3;
  EXPECT_GE(found, 45);
}

TEST(SequentialHalving, SpendsMostOnTheBest) {
  std::vector<ActionStatistics> actions(4);
  const double costs[] = {12, 10, 14, 13};
  Rng rng(2);
  RootChoice choice(4, 4, 8, 0, rng);
  while (!choice.is_done()) {
    const std::size_t a = choice.next(actions, 12);
    ++actions[a].visits;
    actions[a].cost_sum += costs[a];
  }
  EXPECT_EQ(actions[1].visits, 3);
  EXPECT_EQ(actions[0].visits, 3);
  EXPECT_EQ(actions[2].visits, 1);
  EXPECT_EQ(choice.best(actions, 12), 1u);
}

TEST(CompletedValues, UnvisitedActionsGetTheMixedEstimate) {
  // Two actions of policy 1/2; one visited twice at mean cost 8, the position says 12:
  // v_mix = (12 + 2 * 8) / 3 = 28 / 3.
  const std::vector<ActionStatistics> actions{{0, 2, 16}, {0, 0, 0}};
  const std::vector<double> sigma = completed_sigma(actions, 12);
  const double scale = (50 + 2) * 0.1;
  EXPECT_NEAR(sigma[0], scale, 1e-12);
  EXPECT_NEAR(sigma[1], 0, 1e-12);
  const std::vector<double> policy = improved_policy(actions, 12);
  EXPECT_NEAR(std::accumulate(policy.begin(), policy.end(), 0.0), 1, 1e-12);
  EXPECT_GT(policy[0], policy[1]);
}

TEST(CompletedValues, ImproveThePolicy) {
  Rng rng(3);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<ActionStatistics> actions(6);
    double old_cost = 0, new_cost = 0;
    for (ActionStatistics& action : actions) action = {rng.normal(), 1, rng.uniform(50, 100)};
    const std::vector<double> before = policy_of(actions), after = improved_policy(actions, 75);
    for (std::size_t a = 0; a < actions.size(); ++a) {
      old_cost += before[a] * actions[a].mean_cost();
      new_cost += after[a] * actions[a].mean_cost();
    }
    EXPECT_LE(new_cost, old_cost + 1e-9);
  }
}

TEST(InnerChoice, VisitsFollowTheImprovedPolicy) {
  std::vector<ActionStatistics> actions{{1, 0, 0}, {0, 0, 0}, {-1, 0, 0}};
  for (int t = 0; t < 300; ++t) {
    ActionStatistics& action = actions[inner_action(actions, 10)];
    ++action.visits;
    action.cost_sum += 10;
  }
  const std::vector<double> policy = policy_of(actions);
  for (std::size_t a = 0; a < 3; ++a) EXPECT_NEAR(actions[a].visits / 300.0, policy[a], 0.02);
}

}  // namespace
}  // namespace loipe::agent
