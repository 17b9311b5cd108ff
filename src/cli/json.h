// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "driver/counts.h"

namespace loipe::cli {

/// Keys in the order in which they are set.
using Json = nlohmann::ordered_json;

inline constexpr int kJsonSchema = 1;

/// {"published": ..., "actual": ..., "folded": ...}
Json multiplications_json(const OrderCounts& counts);
Json additions_json(const OrderCounts& counts);
Json operations_json(const OpCost& cost);

/// "order": the vertices; null beside "moves" where edges are eliminated.
void add_order(Json& json, const EliminationOrder& order, const Program& program);

/// Prints one object and a newline.
void print_json(const Json& json);

}  // namespace loipe::cli
