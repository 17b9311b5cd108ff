// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "driver/counted_cost.h"
#include "orders/search/steps.h"

namespace loipe {

struct CountedChainOptions {
  std::uint64_t seed = 0;
  std::uint64_t work = 0;  ///< as told by Counted
  double first_temperature = 1, last_temperature = 0.1;
  int rank = 0;
  bool with_edges = false;
};

/// Simulated annealing where each cost takes an accumulation. A game on the published graph of
/// the program tells which changes are none: sequences in which every elimination meets the same
/// neighbours record the same program, and what has been counted is not counted again.
class CountedChain {
 public:
  /// `game`: at its start, with edges; null where the published rule does not apply.
  CountedChain(const CountedCost& cost, const Game* game, std::vector<search::Step> steps,
               std::int64_t start_cost, const CountedChainOptions& options);

  /// Until the work is done or the time is out.
  void run(search::MovesIncumbent& incumbent);

  /// The order of a sequence, as it is counted.
  static EliminationOrder order_of(const Game* game, const std::vector<search::Step>& steps);

 private:
  std::vector<search::Step> changed();
  void shuffle(std::vector<search::Step>& steps, std::size_t from, std::size_t to);
  bool insert_edge(std::vector<search::Step>& steps, std::size_t at);
  std::uint64_t signature(const std::vector<search::Step>& steps);
  std::int64_t cost_of(const std::vector<search::Step>& steps);

  const CountedCost& cost_;
  std::optional<Game> game_;
  std::vector<search::Step> steps_;
  std::int64_t current_;
  CountedChainOptions options_;
  Rng rng_;
  std::uint64_t work_ = 0;
  std::unordered_map<std::uint64_t, std::int64_t> known_;  ///< costs by signature
};

}  // namespace loipe
