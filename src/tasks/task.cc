// SPDX-License-Identifier: Apache-2.0
#include "tasks/task.h"

#include <algorithm>

#include "base/text.h"
#include "frontends/trace.h"
#include "tasks/definitions.h"

namespace loipe {

namespace {

/// Where the record says nothing, all arguments differ between examples.
Task with_defaults(Task task) {
  if (task.batched_arguments.empty())
    for (const Argument& argument : task.arguments({})) task.batched_arguments.push_back(argument.name);
  return task;
}

const std::vector<Task>& task_list() {
  static const std::vector<Task> list = [] {
    std::vector<Task> tasks;
    for (Task (*definition)() :
         {tasks::roe_flux_1d, tasks::roe_flux_3d, tasks::robot_arm_6dof, tasks::human_heart_dipole,
          tasks::propane_combustion, tasks::black_scholes_jacobian, tasks::random_f, tasks::random_g,
          tasks::perceptron, tasks::encoder, tasks::encoder_decoder, tasks::helmholtz, tasks::free_energy,
          tasks::kerr_senn, tasks::cloud_schemes, tasks::simple, tasks::lighthouse, tasks::hole})
      tasks.push_back(with_defaults(definition()));
    return tasks;
  }();
  return list;
}

}  // namespace

std::span<const Task> all_tasks() { return task_list(); }

const Task& find_task(std::string_view name) {
  std::vector<std::string> names;
  for (const Task& task : all_tasks()) {
    if (task.name == name || std::ranges::find(task.aliases, name) != task.aliases.end()) return task;
    names.push_back(task.name);
    names.insert(names.end(), task.aliases.begin(), task.aliases.end());
  }
  throw UserError("unknown task '" + shortened(name) + "'" + did_you_mean(name, names) + "; the tasks are " +
                  join(names, ", "));
}

void check_options(const Task& task, const TaskOptions& options) {
  if (options.scale < 1)
    throw UserError("scale " + std::to_string(options.scale) + " of task '" + task.name +
                    "': expected 1 or more");
  constexpr std::int64_t kLargestScale = 1 << 20;
  if (options.scale > kLargestScale)
    throw ResourceError("scale " + std::to_string(options.scale) + " of task '" + task.name +
                        "' is above the largest, " + std::to_string(kLargestScale));
  if (options.scale != 1 && !task.has_scale)
    throw UserError("task '" + task.name + "' has one size only, so scale " + std::to_string(options.scale) +
                    " does not exist; expected 1");
  if (options.batch < 1)
    throw UserError("batch " + std::to_string(options.batch) + " of task '" + task.name +
                    "': expected 1 or more");
  if (!is_floating(options.dtype))
    throw UserError("task '" + task.name + "' in dtype " + std::string(to_string(options.dtype)) +
                    ": expected f32 or f64");
}

Program Task::build(const TaskOptions& options) const {
  check_options(*this, options);
  return trace(name, arguments(options), function);
}

}  // namespace loipe
