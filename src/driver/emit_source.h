// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/c_source.h>

#include <filesystem>

#include "driver/compiled_derivative.h"
#include "driver/task_jacobian.h"

namespace loipe {

/// What Jacobian::c_source and Derivative::c_source give.
CSource c_source(const CompiledDerivative& derivative, const std::string& function);

/// Writes the compiled derivative as NAME.h and NAME.c into the folder, which is made if it is missing
/// (see loipe/c_source.h). Unsupported, with the reasons, for ops that are defined in C++; FileError when a
/// file cannot be written, and then neither is. Returns the paths.
std::vector<std::filesystem::path> emit_c_source(const TaskJacobian& jacobian, const std::string& name,
                                                 const std::filesystem::path& folder);

}  // namespace loipe
