// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <vector>

#include "ir/program.h"
#include "orders/order.h"
#include "orders/published/graph.h"

namespace loipe {

/// The `moves` of an order file: [["vertex", j], ["front", i, j], ["back", j, k]]. UserError
/// for another form, and for a name that no argument has.
std::vector<EliminationMove> moves_from_json(const nlohmann::json& list, const Program& program);
nlohmann::ordered_json moves_to_json(std::span<const EliminationMove> moves, const Program& program);

/// "v3, x -> v3, v3 -> v7": how moves are shown to people.
std::string to_string(std::span<const EliminationMove> moves, const Program& program);

/// Vertices and edges drawn at random until nothing is left to eliminate; the same for the
/// same seed.
EliminationOrder random_moves(const Program& program, std::uint64_t seed);

/// See validate_order.
void validate_moves(const Program& program, const EliminationOrder& order);

/// Multiplications of the moves by the published rule; nothing if on that graph they leave a
/// vertex between two edges.
std::optional<std::int64_t> count_moves(const published::Graph& graph, std::span<const EliminationMove> moves,
                                        published::RuleSet rules = published::RuleSet::published);

}  // namespace loipe
