// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/objective.h"
#include "driver/subject.h"
#include "orders/order.h"
#include "orders/published/graph.h"

namespace loipe {

/// Whether the published counts of a task are those of the reference implementation's
/// graph, or of the true one. They differ for BlackScholes_Jacobian, whose reference
/// graph has seven edges in a wrong place.
enum class PublishedGraph : std::uint8_t { reference, corrected };

/// The subject's program as the published rule sees it. Unsupported where the rule does
/// not apply (arrays of rank above 2).
published::Graph published_graph(const Subject& subject, const Program& program, PublishedGraph which);

/// resolve_order for a subject, plus `random:SEED`, and the shipped orders that search found:
/// `best-published`, `best-actual`, `best-folded`, and `best`, which is the one for the objective given:
/// the operations that are executed, unless the caller is after another cost.
/// `markowitz` is taken on the graph that is counted.
EliminationOrder subject_order(const std::string& name_or_file, const Subject& subject,
                               const Program& program, PublishedGraph which = PublishedGraph::reference,
                               Objective best = Objective::folded);

/// The names of all orders that exist for the subject.
std::vector<std::string> subject_order_names(const Subject& subject);

}  // namespace loipe
