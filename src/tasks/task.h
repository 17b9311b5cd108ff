// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/trace.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace loipe {

struct TaskOptions {
  std::int64_t scale = 1;  ///< size of the networks; 1 for all other tasks
  std::int64_t batch = 1;  ///< number of examples
  DType dtype = DType::f32;
};

/// Where a task has regular inputs; see tasks/inputs.h.
struct InputRecipe {
  /// A regular point: the elements of all arguments of one example. Empty for the
  /// networks, whose inputs are drawn by the kind of the argument.
  std::vector<double> point;
  /// Width of the relative noise around it that keeps all values regular.
  double jitter = 0.1;
  /// The inputs of the published experiments where they are another point.
  std::vector<double> published = {};
};

/// A built-in function: ordinary traced C++ whose program has exactly the vertices
/// of the published graph, in its order, at scale 1 and batch 1. (The functions are
/// those of the AlphaGrad benchmark, arXiv 2406.05027, and of its companion
/// Graphax.) The code evaluates one operation per statement wherever C++ leaves
/// the order of evaluation open.
struct Task {
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  /// Whether there are larger versions.
  bool has_scale = false;
  /// Whether the program itself has a batch axis, as published. A task without one
  /// describes a single example, and the caller runs it once for each.
  bool has_batch_axis = false;
  /// The arguments that differ between the examples of a batch.
  std::vector<std::string> batched_arguments = {};
  /// Name and type of every argument, in order.
  std::function<std::vector<Argument>(const TaskOptions&)> arguments;
  TracedFunction function;
  InputRecipe inputs = {};

  /// The program. `batch` is the extent of the batch axis where there is one, and
  /// without meaning elsewhere. UserError for a scale or batch below 1, a scale other
  /// than 1 where there is none, and a dtype that is not floating point.
  Program build(const TaskOptions& options) const;
};

/// All tasks: the ten of the published benchmark, then the further examples.
std::span<const Task> all_tasks();
/// By name or alias; UserError that suggests the nearest name.
const Task& find_task(std::string_view name);
/// What `build` refuses.
void check_options(const Task& task, const TaskOptions& options);

}  // namespace loipe
