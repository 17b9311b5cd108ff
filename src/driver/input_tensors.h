// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/subject.h"
#include "tensor/safetensors.h"

namespace loipe {

/// What a run is in unless told otherwise: the dtype of the first floating argument's
/// tensor. Absent when the file holds no floating input, and for a program file that
/// mixes precisions on purpose.
std::optional<DType> default_dtype(const SafetensorsFile& file, const Subject& subject);

/// The arguments that the file's metadata says are batched; empty when it says nothing.
std::vector<std::string> stored_batched(const SafetensorsFile& file);

/// `in.<name>` for each name, of exactly these shapes (but [1] passes for a scalar). Floating tensors are
/// converted; integer and boolean ones must have the dtype already. UserError that names the tensor.
std::vector<Tensor> load_inputs(const SafetensorsFile& file, const std::string& path,
                                std::span<const std::string> names, std::span<const TensorType> types);

}  // namespace loipe
