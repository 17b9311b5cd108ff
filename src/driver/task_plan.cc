// SPDX-License-Identifier: Apache-2.0
#include "driver/task_plan.h"

#include <algorithm>

#include "accumulation/seeding.h"
#include "driver/derivative_options.h"

namespace loipe {

namespace {

std::vector<std::size_t> resolve_wrt(const Program& program, const std::vector<std::string>& names) {
  if (names.empty()) return floating_arguments(program);
  std::vector<std::size_t> positions;
  for (const std::string& name : names) {
    const std::size_t position = program.argument_position(name);
    if (std::ranges::find(positions, position) != positions.end())
      throw UserError("--wrt names argument '" + name + "' twice");
    positions.push_back(position);
  }
  return positions;
}

/// Types of one example: without the program's own batch axis.
std::vector<TensorType> example_types(const Program& program, std::span<const Value> values,
                                      const std::function<bool(std::size_t)>& has_axis) {
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < values.size(); ++i) {
    types.push_back(program.type(values[i]));
    if (has_axis(i)) types.back().shape.erase(types.back().shape.begin());
  }
  return types;
}

/// Tangents have the axis of their argument, cotangents that of outputs.
std::vector<bool> inputs_with_examples(const TaskPlan& plan, const BatchPlan& batch) {
  std::vector<bool> result;
  const std::size_t arguments = plan.program.arguments().size();
  for (std::size_t i = 0; i < plan.signature.inputs.size(); ++i) {
    const std::size_t seed = i - arguments;
    const bool is_batched = i < arguments ? batch.is_batched(i)
                            : plan.request.kind == DerivativeKind::vjp
                                ? true
                                : batch.is_batched(plan.request.wrt[seed]);
    result.push_back(batch.has_caller_axis() && is_batched);
  }
  return result;
}

void add_axis(TensorType& type, std::int64_t examples) { type.shape.insert(type.shape.begin(), examples); }

DerivativeRequest request_of(const Program& program, const TaskJacobianOptions& options) {
  check_directions(options.kind, options.directions);
  check_outer_order(options.kind, options.outer_order);
  DerivativeRequest request;
  request.kind = options.kind;
  request.wrt = resolve_wrt(program, options.wrt);
  request.of = resolve_outputs(program, options.of);
  if (options.directions > 0) request.directions = options.directions;
  if (options.kind == DerivativeKind::jacobian) request.batched = options.batch.program_axis();
  request.outer_order = options.outer_order;
  request.returns_jacobian = is_second_order(options.kind);
  differentiated(program, request.kind, request.of);  // checks
  return request;
}

}  // namespace

std::vector<std::string> TaskPlan::tensor_names() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < signature.inputs.size(); ++i)
    names.push_back((i < program.arguments().size() ? "in." : "") + signature.inputs[i].name);
  return names;
}

std::vector<TensorType> TaskPlan::input_types() const {
  std::vector<TensorType> types;
  for (const NamedType& input : signature.inputs) types.push_back(input.type);
  return types;
}

Subject one_example(const Subject& subject) {
  const std::optional<std::int64_t> scale =
      subject.task()->has_scale ? std::optional(subject.scale()) : std::nullopt;
  return Subject({subject.name(), scale, 1});
}

TaskPlan plan_task(const Subject& subject, const TaskJacobianOptions& options) {
  const BatchPlan& batch = options.batch;
  // A JVP of all examples at once is the JVP of each. A VJP would add up what the examples
  // give to shared arguments, and directions stand behind the axis of examples.
  const bool fits_axis = options.kind == DerivativeKind::jacobian ||
                         (options.kind == DerivativeKind::jvp && options.directions == 0);
  const bool keeps_axis = fits_axis || !subject.has_batch_axis();
  TaskPlan plan{
      .program = keeps_axis ? subject.program(options.dtype) : one_example(subject).program(options.dtype),
      .request = {},
      .signature = {},
      .has_examples = {},
      .runs_each_example = batch.has_caller_axis() && !(keeps_axis && batch.kind == BatchPlan::Kind::axis)};
  plan.request = request_of(plan.program, options);
  const std::vector<bool> axis = batch.program_axis();
  plan.signature = signature_of(
      plan.request, plan.program,
      example_types(plan.program, plan.program.arguments(),
                    [&](std::size_t i) { return !axis.empty() && axis[i]; }),
      example_types(plan.program, plan.program.outputs(), [&](std::size_t) { return !axis.empty(); }));
  plan.has_examples = inputs_with_examples(plan, batch);
  for (std::size_t i = 0; i < plan.signature.inputs.size(); ++i)
    if (plan.has_examples[i]) add_axis(plan.signature.inputs[i].type, batch.examples);
  if (batch.has_caller_axis())
    for (NamedType& result : plan.signature.results) add_axis(result.type, batch.examples);
  return plan;
}

}  // namespace loipe
