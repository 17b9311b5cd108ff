// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orders/published/graph.h"

namespace loipe::published {

/// The vertices that an order must contain, ascending: all but pure outputs.
/// Vertices that are dead or depend on no input belong to it and cost nothing.
std::vector<int> eliminable(const Graph& graph);

/// Ascending and descending.
std::vector<int> forward_order(const Graph& graph);
std::vector<int> reverse_order(const Graph& graph);

/// UserError unless `order` is a permutation of `eliminable`; the message lists
/// what is missing, repeated or out of place.
void validate_order(const Graph& graph, std::span<const int> order);

/// Multiplications of the whole order, which is validated first.
std::int64_t count(const Graph& graph, std::span<const int> order, RuleSet rules = RuleSet::published);

}  // namespace loipe::published
