// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "backends/kernel/kernel.h"

namespace llvm {
class Module;
}

namespace loipe::jit {

/// Prints the kernel as the function NAME of the signature kernel::Function, with
/// explicit vectors of kernel.lanes elements. What does not vary along the last loop
/// is loaded and computed before it.
void emit_kernel(llvm::Module& module, const kernel::Kernel& kernel, const std::string& name);

}  // namespace loipe::jit
