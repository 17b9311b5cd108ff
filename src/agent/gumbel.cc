// SPDX-License-Identifier: Apache-2.0
#include "agent/gumbel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace loipe::agent {

namespace {

constexpr double kVisitOffset = 50;    ///< c_visit of the paper
constexpr double kScale = 0.1;         ///< c_scale
constexpr double kLeastSpread = 0.01;  ///< of the cost to go

std::vector<double> softmax_of(std::vector<double> logits) {
  if (logits.empty()) return logits;
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (double& logit : logits) sum += logit = std::exp(logit - most);
  for (double& logit : logits) logit /= sum;
  return logits;
}

}  // namespace

std::vector<int> halving_schedule(int considered, int simulations) {
  std::vector<int> schedule;
  if (considered <= 1) {
    for (int t = 0; t < simulations; ++t) schedule.push_back(t);
    return schedule;
  }
  const auto rounds = static_cast<int>(std::bit_width(static_cast<unsigned>(considered - 1)));
  std::vector<int> visits(static_cast<std::size_t>(considered), 0);
  const auto size = [&] { return static_cast<int>(schedule.size()); };
  for (int left = considered; size() < simulations; left = std::max(2, left / 2)) {
    const int repeats = std::max(1, simulations / (rounds * left));
    for (int r = 0; r < repeats; ++r)
      for (int k = 0; k < left && size() < simulations; ++k)
        schedule.push_back(visits[static_cast<std::size_t>(k)]++);
  }
  return schedule;
}

std::vector<double> policy_of(std::span<const ActionStatistics> actions) {
  std::vector<double> logits;
  for (const ActionStatistics& action : actions) logits.push_back(action.logit);
  return softmax_of(std::move(logits));
}

std::vector<double> completed_sigma(std::span<const ActionStatistics> actions, double cost_to_go) {
  const std::vector<double> policy = policy_of(actions);
  double visited_mass = 0, visited_cost = 0;
  int visits = 0, most_visits = 0;
  for (std::size_t a = 0; a < actions.size(); ++a) {
    if (actions[a].visits == 0) continue;
    const double mass = std::max(policy[a], 1e-12);
    visited_mass += mass;
    visited_cost += mass * actions[a].mean_cost();
    visits += actions[a].visits;
    most_visits = std::max(most_visits, actions[a].visits);
  }
  const double mixed =
      visits == 0 ? cost_to_go : (cost_to_go + visits * visited_cost / visited_mass) / (1 + visits);
  std::vector<double> costs;
  for (const ActionStatistics& action : actions)
    costs.push_back(action.visits > 0 ? action.mean_cost() : mixed);
  const auto [least, most] = std::ranges::minmax(costs);
  const double spread = std::max({most - least, kLeastSpread * std::abs(mixed), 1.0});
  for (double& cost : costs) cost = (kVisitOffset + most_visits) * kScale * (most - cost) / spread;
  return costs;
}

std::vector<double> improved_policy(std::span<const ActionStatistics> actions, double cost_to_go) {
  std::vector<double> logits = completed_sigma(actions, cost_to_go);
  for (std::size_t a = 0; a < actions.size(); ++a) logits[a] += actions[a].logit;
  return softmax_of(std::move(logits));
}

std::size_t inner_action(std::span<const ActionStatistics> actions, double cost_to_go) {
  const std::vector<double> policy = improved_policy(actions, cost_to_go);
  int visits = 0;
  for (const ActionStatistics& action : actions) visits += action.visits;
  std::size_t best = 0;
  double most = -std::numeric_limits<double>::infinity();
  for (std::size_t a = 0; a < actions.size(); ++a) {
    const double lag = policy[a] - static_cast<double>(actions[a].visits) / (1 + visits);
    if (lag > most) {
      most = lag;
      best = a;
    }
  }
  return best;
}

RootChoice::RootChoice(std::size_t actions, int considered, int simulations, double noise, Rng& rng)
    : schedule_(halving_schedule(std::min(considered, static_cast<int>(actions)), simulations)) {
  for (std::size_t a = 0; a < actions; ++a)
    noise_.push_back(noise > 0 ? -noise * std::log(-std::log(std::max(rng.uniform(), 1e-300))) : 0.0);
}

std::size_t RootChoice::next(std::span<const ActionStatistics> actions, double cost_to_go) {
  return best_among(actions, cost_to_go, schedule_[done_++]);
}

std::size_t RootChoice::best(std::span<const ActionStatistics> actions, double cost_to_go) const {
  int most = 0;
  for (const ActionStatistics& action : actions) most = std::max(most, action.visits);
  return best_among(actions, cost_to_go, most);
}

std::size_t RootChoice::best_among(std::span<const ActionStatistics> actions, double cost_to_go,
                                   int visits) const {
  const std::vector<double> sigma = completed_sigma(actions, cost_to_go);
  std::size_t best = 0;
  double most = -std::numeric_limits<double>::infinity();
  for (std::size_t a = 0; a < actions.size(); ++a) {
    const double score = noise_[a] + actions[a].logit + sigma[a];
    if (actions[a].visits != visits || score <= most) continue;
    most = score;
    best = a;
  }
  return best;
}

}  // namespace loipe::agent
