// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "base/rng.h"

// The choices of Gumbel AlphaZero (Danihelka, Guez, Schrittwieser and Silver, "Policy
// improvement by planning with Gumbel", ICLR 2022), for costs instead of rewards: the
// fewer, the better.

namespace loipe::agent {

/// An action of a position and what simulations said of it.
struct ActionStatistics {
  double logit = 0;
  int visits = 0;
  double cost_sum = 0;  ///< of the simulations: cost of the action and all after it

  double mean_cost() const { return cost_sum / visits; }
};

/// Sequential halving spends `simulations` on `considered` actions in log2(considered)
/// rounds of equal length; after each, the better half stays. Entry t is the number of
/// visits that the action of simulation t has had before (section 3 and appendix B of the
/// paper; the action of the largest score among those is taken).
std::vector<int> halving_schedule(int considered, int simulations);

/// softmax of the logits.
std::vector<double> policy_of(std::span<const ActionStatistics> actions);

/// sigma(q) of each action (section 5 of the paper): q is minus the cost, completed for
/// actions without visits by the mixed estimate of the position's own value (appendix D):
///   v_mix = (v + N * sum_visited(pi q) / sum_visited(pi)) / (1 + N),   N all visits,
/// scaled to [0, 1] over the actions, but never by less than a hundredth of the cost, so that
/// the noise of estimates is not blown up; sigma(q) = (c_visit + max visits) c_scale q.
std::vector<double> completed_sigma(std::span<const ActionStatistics> actions, double cost_to_go);

/// The improved policy softmax(logit + sigma(completed q)): what the network learns.
std::vector<double> improved_policy(std::span<const ActionStatistics> actions, double cost_to_go);

/// Inside the tree: the action whose share of the visits lags most behind the improved policy.
std::size_t inner_action(std::span<const ActionStatistics> actions, double cost_to_go);

/// At the root: sequential halving over the actions of the largest logit + Gumbel noise, which
/// are a sample of the policy without replacement.
class RootChoice {
 public:
  /// `noise`: factor of the Gumbel noise; 0 takes the largest logits.
  RootChoice(std::size_t actions, int considered, int simulations, double noise, Rng& rng);

  bool is_done() const { return done_ >= schedule_.size(); }
  /// The action of the next simulation; ties go to the first.
  std::size_t next(std::span<const ActionStatistics> actions, double cost_to_go);
  /// Of the most visited actions the best.
  std::size_t best(std::span<const ActionStatistics> actions, double cost_to_go) const;

 private:
  std::size_t best_among(std::span<const ActionStatistics> actions, double cost_to_go, int visits) const;

  std::vector<double> noise_;
  std::vector<int> schedule_;
  std::size_t done_ = 0;
};

}  // namespace loipe::agent
