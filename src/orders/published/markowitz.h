// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "orders/published/state.h"

namespace loipe::published {

/// The degree of the published minimal Markowitz order: (weights of the post
/// edges) times (weights of the pre edges). On scalar graphs every edge weighs
/// 1. On tensor graphs a dense edge weighs the number of elements of the vertex
/// itself and others one of its destination extents, so that the size of a
/// neighbour never matters: a poor guide, kept because the published orders
/// follow it.
std::int64_t markowitz_degree(const State& state, int vertex);

/// Greedy by that degree on the current graph, fill-in included; of equal
/// degrees the lowest vertex number goes first.
std::vector<int> markowitz_order(const Graph& graph, RuleSet rules = RuleSet::published);

}  // namespace loipe::published
