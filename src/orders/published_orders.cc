// SPDX-License-Identifier: Apache-2.0
#include "orders/published_orders.h"

#include <initializer_list>

namespace loipe {

namespace {

struct PublishedOrder {
  std::string_view task, name;
  std::initializer_list<int> vertices;
};

#define LOIPE_PUBLISHED_ORDER(task, name, ...) {task, name, {__VA_ARGS__}},
const PublishedOrder kOrders[] = {
#include "orders/published_orders.def"
};
#undef LOIPE_PUBLISHED_ORDER

}  // namespace

std::vector<int> published_order(std::string_view task, std::string_view name) {
  for (const PublishedOrder& order : kOrders)
    if (order.task == task && order.name == name) return order.vertices;
  return {};
}

}  // namespace loipe
