// SPDX-License-Identifier: Apache-2.0
#include "cli/json.h"

#include "cli/terminal.h"
#include "orders/moves.h"

namespace loipe::cli {

Json multiplications_json(const OrderCounts& counts) {
  Json json;
  json["published"] = counts.published ? Json(*counts.published) : Json(nullptr);
  json["actual"] = counts.actual_multiplications;
  json["folded"] = counts.folded_multiplications;
  return json;
}

Json additions_json(const OrderCounts& counts) {
  return {{"actual", counts.actual_additions}, {"folded", counts.folded_additions}};
}

Json operations_json(const OpCost& cost) {
  return {{"multiplications", cost.multiplications},
          {"additions", cost.additions},
          {"divisions", cost.divisions},
          {"functions", cost.functions}};
}

void add_order(Json& json, const EliminationOrder& order, const Program& program) {
  json["order"] = order.has_moves() ? Json(nullptr) : Json(order.vertices);
  if (order.has_moves()) json["moves"] = moves_to_json(order.moves, program);
}

void print_json(const Json& json) {
  // Paths and names may be any bytes; what is no UTF-8 is replaced.
  print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace loipe::cli
