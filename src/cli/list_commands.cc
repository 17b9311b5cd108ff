// SPDX-License-Identifier: Apache-2.0
// The commands that list what is built in: tasks, ops, info.
#include <loipe/loipe.h>

#include <thread>

#include "backends/backend.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/table.h"
#include "driver/derivative.h"
#include "driver/op_support.h"
#include "driver/subject_order.h"
#include "ir/op_def.h"
#include "passes/pass.h"

namespace loipe::cli {

namespace {

Json task_json(const Task& task) {
  const Subject subject({task.name, {}, {}});
  const Program program = subject.program();
  Json arguments = Json::array();
  for (std::size_t i = 0; i < program.arguments().size(); ++i)
    arguments.push_back(
        {{"name", program.argument_name(i)}, {"shape", program.shape(program.arguments()[i])}});
  Json outputs = Json::array();
  for (Value output : program.outputs()) outputs.push_back({{"shape", program.shape(output)}});
  return {{"name", task.name},
          {"aliases", task.aliases},
          {"summary", task.summary},
          {"has_scale", task.has_scale},
          {"has_batch_axis", task.has_batch_axis},
          {"batched", task.batched_arguments},
          {"eliminated", eliminable_vertices(program).size()},
          {"orders", subject_order_names(subject)},
          {"arguments", arguments},
          {"outputs", outputs}};
}

int run_tasks(bool json) {
  if (json) {
    Json list = Json::array();
    for (const Task& task : all_tasks()) list.push_back(task_json(task));
    print_json({{"schema", kJsonSchema}, {"tasks", list}});
    return 0;
  }
  Table table({"task", "arguments", "outputs", "eliminated", "options", "summary"});
  table.align_left(4);
  table.align_left(5);
  for (const Task& task : all_tasks()) {
    const Program program = Subject({task.name, {}, {}}).program();
    table.add({task.name, std::to_string(program.arguments().size()),
               std::to_string(program.outputs().size()), std::to_string(eliminable_vertices(program).size()),
               task.has_scale ? "--scale" : "", task.summary});
  }
  print(table.text());
  return 0;
}

std::string arity_text(const Arity& arity) {
  if (arity.maximum == Arity::kVariadic) return std::to_string(arity.minimum) + "+";
  const std::string text = std::to_string(arity.minimum);
  return arity.minimum == arity.maximum ? text : text + "-" + std::to_string(arity.maximum);
}

/// The fields of the conformance matrix, each for every order.
Json derivatives_json(const OpDef& op) {
  Json fields = Json::array();
  for (const OpSupport& field : op_support(op))
    fields.push_back({{"derivative", to_string(field.derivative)},
                      {"backend", field.backend},
                      {"dtype", to_string(field.dtype)},
                      {"orders", {"forward", "reverse", "markowitz", "random"}},
                      {"supported", field.why_not.empty()},
                      {"why_not", field.why_not.empty() ? Json(nullptr) : Json(field.why_not)}});
  return fields;
}

Json op_json(const OpDef& op) {
  const Differentiation& rule = op.jacobian.value;
  const Arity& arity = op.arity.value;
  const auto name_or_null = [](std::string_view name) { return name.empty() ? Json(nullptr) : Json(name); };
  Json json;
  json["name"] = op.name.value;
  json["summary"] = op.summary.value;
  json["arity"] = {{"minimum", arity.minimum},
                   {"maximum", arity.maximum == Arity::kVariadic ? Json(nullptr) : Json(arity.maximum)}};
  json["differentiable"] = rule.rule != nullptr;
  json["why_not"] = name_or_null(rule.why_not);
  json["derivatives"] = derivatives_json(op);
  json["jax_name"] = name_or_null(op.jax_name);
  json["onnx_name"] = name_or_null(op.onnx_name);
  return json;
}

int run_ops(bool json) {
  if (json) {
    Json list = Json::array();
    for (const OpDef* op : all_ops()) list.push_back(op_json(*op));
    print_json({{"schema", kJsonSchema}, {"ops", list}});
    return 0;
  }
  Table table({"op", "operands", "derivative", "summary"});
  table.align_left(2);
  table.align_left(3);
  for (const OpDef* op : all_ops())
    table.add({std::string(op->name.value), arity_text(op->arity.value),
               op->jacobian.value.rule ? "yes" : "no", std::string(op->summary.value)});
  print(table.text());
  return 0;
}

template <int (*run)(bool)>
Action declare(CLI::App& app, Terminal&) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "print JSON");
  return [json] { return run(*json); };
}

}  // namespace

const Command kTasksCommand{"tasks", "List the built-in functions", "  loipe tasks\n  loipe tasks --json",
                            declare<run_tasks>};

const Command kOpsCommand{"ops", "List the operations of tensor programs", "  loipe ops\n  loipe ops --json",
                          declare<run_ops>};

}  // namespace loipe::cli
