// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "backends/kernel/kernel.h"

namespace llvm {
class Module;
}

namespace loipe::jit {

/// Functions that kernels call.
struct KernelHelpers {
  /// to[row*columns + column] = from[row + column*stride], for elements of 4 and of 8 bytes.
  void (*transpose_f32)(const float* from, std::ptrdiff_t stride, float* to, std::ptrdiff_t rows,
                        std::ptrdiff_t columns);
  void (*transpose_f64)(const double* from, std::ptrdiff_t stride, double* to, std::ptrdiff_t rows,
                        std::ptrdiff_t columns);
};

/// Prints the kernel as the function NAME of the signature kernel::Function, with
/// explicit vectors of kernel.lanes elements. What does not vary along the last loop
/// is loaded and computed before it.
void emit_kernel(llvm::Module& module, const kernel::Kernel& kernel, const KernelHelpers& helpers,
                 const std::string& name);

}  // namespace loipe::jit
