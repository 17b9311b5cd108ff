// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "driver/task_jacobian.h"

namespace loipe {

/// Writes the compiled Jacobian as NAME.h and NAME.c into the folder, which is made if
/// it is missing: self-contained C11 for one example, with the sparsity pattern of every
/// block as constants. Unsupported, with the reasons, for programs that are too large
/// for straight-line code or compute with run-time indices; FileError when a file cannot
/// be written. Returns the paths.
std::vector<std::filesystem::path> emit_c_source(const TaskJacobian& jacobian, const std::string& name,
                                                 const std::filesystem::path& folder);

}  // namespace loipe
