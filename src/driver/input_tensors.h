// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/subject.h"
#include "driver/task_plan.h"
#include "tensor/safetensors.h"

namespace loipe {

/// What a run is in unless told otherwise: the widest dtype of the floating arguments'
/// tensors. Absent when the file holds no floating input, and for a program file that
/// mixes precisions on purpose.
std::optional<DType> default_dtype(const SafetensorsFile& file, const Subject& subject);

/// The arguments that the file's metadata says are batched; empty when it says nothing.
std::vector<std::string> stored_batched(const SafetensorsFile& file);

/// `in.<name>` for each name, of exactly these shapes (but [1] passes for a scalar). Floating tensors are
/// converted; integer and boolean ones must have the dtype already. UserError that names the tensor.
std::vector<Tensor> load_inputs(const SafetensorsFile& file, const std::string& path,
                                std::span<const std::string> names, std::span<const TensorType> types);

/// The same for tensors under their whole names, such as "tangent.x".
std::vector<Tensor> load_tensors(const SafetensorsFile& file, const std::string& path,
                                 std::span<const std::string> names, std::span<const TensorType> types);

/// How many directions the seeds in the file are for: 0 where they have no axis of them, as
/// in the plan, else its extent. `plan` is one without that axis.
std::int64_t stored_directions(const SafetensorsFile& file, const TaskPlan& plan);

}  // namespace loipe
