// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "driver/task_jacobian.h"

namespace loipe {

/// Writes the compiled derivative as NAME.h and NAME.c into the folder, which is made if it is missing:
/// self-contained C11 for one example, with the sparsity pattern of every block as constants
/// (backends/c/emit_c.h). Unsupported, with the reasons, for ops that are defined in C++; FileError when a
/// file cannot be written, and then neither is. Returns the paths.
std::vector<std::filesystem::path> emit_c_source(const TaskJacobian& jacobian, const std::string& name,
                                                 const std::filesystem::path& folder);

}  // namespace loipe
