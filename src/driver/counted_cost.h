// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/counts.h"
#include "driver/objective.h"
#include "driver/time_model.h"

namespace loipe {

/// What an order costs, with the elementary steps that counting took: a measure of time that
/// does not depend on the machine.
struct Counted {
  std::int64_t cost;
  std::uint64_t work;
};

/// The cost of orders by what is recorded for them, or by what is left of it after the passes.
/// Any number of threads may count at the same time.
class CountedCost {
 public:
  CountedCost(const Subject& subject, const Program& program, Objective objective,
              const TimeConstants& constants);

  Counted of(const EliminationOrder& order) const;

 private:
  const Program& program_;
  Objective objective_;
  TimeConstants constants_;
  AccumulationRequest request_;
  OpCost function_;  ///< of the optimised function itself
};

}  // namespace loipe
