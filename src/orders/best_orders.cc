// SPDX-License-Identifier: Apache-2.0
#include "orders/best_orders.h"

namespace loipe {

std::span<const BestOrder> best_orders() {
#define LOIPE_BEST_ORDER(task, objective, scale, batch, cost, ...) \
  {task, objective, scale, batch, cost, {__VA_ARGS__}},
  static const std::vector<BestOrder> orders{
#include "orders/best_orders.def"
  };
#undef LOIPE_BEST_ORDER
  return orders;
}

const BestOrder* best_order(std::string_view task, std::string_view objective, std::int64_t scale) {
  for (const BestOrder& order : best_orders())
    if (order.task == task && order.objective == objective && (order.scale > 1) == (scale > 1)) return &order;
  return nullptr;
}

}  // namespace loipe
