// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

/// resolve_order for a subject, plus `random:SEED` and `best`, the shipped order that search found.
/// `markowitz` is taken on the graph that is counted.
EliminationOrder subject_order(const std::string& name_or_file, const Subject& subject,
                               const Program& program, PublishedGraph which = PublishedGraph::reference);

/// The names of all orders that exist for the subject.
std::vector<std::string> subject_order_names(const Subject& subject);

}  // namespace loipe
