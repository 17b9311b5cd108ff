// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/task.h"

namespace loipe {

/// rich: regular inputs without structural zeros, for testing and timing. Networks:
/// gamma 1.1, beta -0.2, x, y and biases standard normal, weight matrices normal with
/// variance 1 / columns. Other tasks: a regular point with relative noise.
///
/// published: those of the published experiments. Networks: x ones, gamma 0, beta 1,
/// all else standard normal; with gamma 0 most derivatives vanish. Other tasks: the
/// published point. Of several examples the first has it; each further one is the
/// point times a factor of its own in (0, 1), the same for all arguments. The point of
/// g leaves the domain of several operations, so that most of its results are NaN.
enum class InputKind { rich, published };

/// Tensors for the task's arguments, in order, in `options.dtype` (drawn in f64, so
/// that both dtypes have the same inputs but for rounding). For a task with a batch
/// axis they fit its program. For others they fit it with batch 1; above, the batched
/// arguments have a leading axis of that extent. UserError for options that
/// Task::build refuses.
std::vector<Tensor> task_inputs(const Task& task, const TaskOptions& options, InputKind kind,
                                std::uint64_t seed);

}  // namespace loipe
