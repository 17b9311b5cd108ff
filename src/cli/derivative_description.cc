// SPDX-License-Identifier: Apache-2.0
#include "cli/derivative_description.h"

#include <functional>

#include "base/text.h"
#include "orders/moves.h"

namespace loipe::cli {

namespace {

/// The published rule counts Jacobians.
OrderCounts counts_of(const TaskJacobian& jacobian, const Subject& subject) {
  OrderCounts counts = order_counts(subject, jacobian.program(), jacobian.order(), jacobian.compilation());
  if (jacobian.request().kind != DerivativeKind::jacobian) counts.published.reset();
  return counts;
}

Json tensors_json(std::span<const TensorType> types, const std::function<std::string(std::size_t)>& name) {
  Json list = Json::array();
  for (std::size_t i = 0; i < types.size(); ++i)
    list.push_back({{"name", name(i)}, {"dtype", to_string(types[i].dtype)}, {"shape", types[i].shape}});
  return list;
}

std::string vertex_list(const EliminationOrder& order, const Program& program) {
  if (order.has_moves()) return to_string(order.moves, program);
  std::vector<std::string> vertices;
  for (int vertex : order.vertices) vertices.push_back(std::to_string(vertex));
  return join(vertices, " ");
}

}  // namespace

Json description_json(const TaskJacobian& jacobian, const Subject& subject, const std::string& backend) {
  const OrderCounts counts = counts_of(jacobian, subject);
  Json json;
  json["schema"] = kJsonSchema;
  json["task"] = subject.name();
  json["derivative"] = to_string(jacobian.request().kind);
  json["scale"] = subject.scale();
  json["batch"] = subject.batch().value_or(1);
  json["order_name"] = jacobian.order().name;
  json["backend"] = backend;
  json["multiplications"] = multiplications_json(counts);
  json["additions"] = additions_json(counts);
  json["executed"] = operations_json(counts.executed);
  json["peak_bytes"] = jacobian.peak_bytes();
  json["inputs"] =
      tensors_json(jacobian.input_types(), [&](std::size_t i) { return jacobian.tensor_name(i); });
  json["results"] =
      tensors_json(jacobian.result_types(), [&](std::size_t i) { return jacobian.result_name(i); });
  add_order(json, jacobian.order(), jacobian.program());
  if (const EliminationOrder* outer = jacobian.outer_order()) {
    json["outer_order_name"] = outer->name;
    json["outer_order"] = outer->vertices;
  }
  return json;
}

std::string description_text(const TaskJacobian& jacobian, const Subject& subject) {
  const OrderCounts counts = counts_of(jacobian, subject);
  const EliminationOrder* outer = jacobian.outer_order();
  std::string text = "task             " + subject.name() + "\n";
  if (jacobian.request().kind != DerivativeKind::jacobian)
    text += "derivative       " + to_string(jacobian.request().kind) + "\n";
  text += "order            " + jacobian.order().name + (outer ? ", then " + outer->name : "") + "\n";
  text += "multiplications  published " + (counts.published ? with_thousands(*counts.published) : "-") +
          ", actual " + with_thousands(counts.actual_multiplications) + ", folded " +
          with_thousands(counts.folded_multiplications) + "\n";
  text += "additions        actual " + with_thousands(counts.actual_additions) + ", folded " +
          with_thousands(counts.folded_additions) + "\n";
  text += "peak bytes       " + with_thousands(static_cast<std::int64_t>(jacobian.peak_bytes())) + "\n";
  return text + "vertices         " + vertex_list(jacobian.order(), jacobian.program()) + "\n";
}

}  // namespace loipe::cli
