// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "driver/pipeline.h"
#include "driver/subject_order.h"

namespace loipe {

/// What one elimination order costs, by all cost models.
struct OrderCounts {
  std::optional<std::int64_t> published;  ///< multiplications; absent where the rule does not apply
  std::int64_t actual_multiplications = 0;
  std::int64_t actual_additions = 0;
  std::int64_t folded_multiplications = 0;  ///< divisions included
  std::int64_t folded_additions = 0;
  OpCost executed;  ///< of one run of the optimised program, primal part included
  EliminationStatistics statistics;
};

/// Multiplications by the published rule, if it applies.
std::optional<std::int64_t> published_count(const Subject& subject, const Program& program,
                                            const EliminationOrder& order, PublishedGraph which);

/// All counts of a compilation, which need not have been given a back end.
OrderCounts order_counts(const Subject& subject, const Program& program, const EliminationOrder& order,
                         const Compilation& compilation, PublishedGraph which = PublishedGraph::reference);

/// Per argument of the program, whether it carries the program's batch axis; empty
/// without one: the `batched` of an AccumulationRequest.
std::vector<bool> batch_axis_arguments(const Subject& subject);

/// Accumulates and optimises without a back end, and counts.
OrderCounts count_order(const Subject& subject, const Program& program, const EliminationOrder& order,
                        PublishedGraph which = PublishedGraph::reference);

}  // namespace loipe
