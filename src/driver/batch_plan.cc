// SPDX-License-Identifier: Apache-2.0
#include "driver/batch_plan.h"

#include <algorithm>

#include "base/text.h"

namespace loipe {

namespace {

std::vector<bool> marked(const std::vector<std::string>& arguments, const std::vector<std::string>& chosen,
                         const std::string& origin) {
  std::vector<bool> marks(arguments.size(), false);
  for (const std::string& name : chosen) {
    const auto found = std::ranges::find(arguments, name);
    if (found == arguments.end())
      throw UserError(origin + " names '" + shortened(name) + "', which is no argument" +
                      did_you_mean(name, arguments) + "; the arguments are " + join(arguments, ", "));
    marks[static_cast<std::size_t>(found - arguments.begin())] = true;
  }
  return marks;
}

/// The axis of the program itself: its batched arguments are fixed.
BatchPlan plan_axis(const Subject& subject, const std::optional<std::vector<std::string>>& requested) {
  const std::vector<std::string> arguments = subject.argument_names();
  const std::vector<std::string>& fixed = subject.task()->batched_arguments;
  BatchPlan plan{subject.batch() ? BatchPlan::Kind::axis : BatchPlan::Kind::squeeze,
                 subject.batch().value_or(1), marked(arguments, fixed, "task '" + subject.name() + "'")};
  if (requested && marked(arguments, *requested, "--batched") != plan.batched)
    throw UserError("--batched " + join(*requested, ",") + ": the batched arguments of '" + subject.name() +
                    "' are fixed, expected " + join(fixed, ","));
  return plan;
}

}  // namespace

std::vector<bool> BatchPlan::program_axis() const {
  return kind == Kind::axis || kind == Kind::squeeze ? batched : std::vector<bool>{};
}

TensorType BatchPlan::argument_type(std::size_t argument, const TensorType& in_program) const {
  TensorType type = in_program;
  if (is_batched(argument)) {
    if (kind == Kind::squeeze) type.shape.erase(type.shape.begin());
    if (kind == Kind::loop) type.shape.insert(type.shape.begin(), examples);
  }
  return type;
}

std::vector<TensorType> BatchPlan::argument_types(const Program& program) const {
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < program.arguments().size(); ++i)
    types.push_back(argument_type(i, program.type(program.arguments()[i])));
  return types;
}

TensorType BatchPlan::result_type(const TensorType& in_program) const {
  TensorType type = in_program;
  if (kind == Kind::squeeze) type.shape.erase(type.shape.begin());
  if (kind == Kind::loop) type.shape.insert(type.shape.begin(), examples);
  return type;
}

BatchPlan plan_batch(const Subject& subject, const std::optional<std::vector<std::string>>& requested,
                     const std::vector<std::string>& stored) {
  if (requested && !subject.batch())
    throw UserError("--batched " + join(*requested, ",") + " needs --batch, the number of examples");
  if (subject.has_batch_axis()) return plan_axis(subject, requested);
  if (!subject.batch()) return {};
  const std::vector<std::string> arguments = subject.argument_names();
  BatchPlan plan{BatchPlan::Kind::loop, *subject.batch(), std::vector<bool>(arguments.size(), true)};
  if (requested) plan.batched = marked(arguments, *requested, "--batched");
  else if (!stored.empty())
    plan.batched = marked(arguments, stored, "the metadata \"batched\" of the input file");
  return plan;
}

}  // namespace loipe
