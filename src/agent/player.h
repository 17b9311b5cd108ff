// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/agent_file.h"
#include "agent/self_play.h"
#include "orders/search/search.h"

namespace loipe::agent {

/// An order by an agent that is trained. The policy alone plays one game (and its completions on
/// the way count, where it has them); with simulations, games with tree search follow, as many as fit in the
/// budget by a count of work (so that graph, budget and seed alone determine the order, at any number of
/// threads, unless the machine is so slow that the time runs out). The result is never worse than forward,
/// reverse and Markowitz: where one of them is best, it is the result and gives the method its name.
search::SearchResult search_with_agent(const Agent& agent, const published::Graph& graph,
                                       const search::SearchOptions& options, int simulations);

}  // namespace loipe::agent
