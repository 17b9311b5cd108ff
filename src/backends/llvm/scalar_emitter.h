// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backends/scalar/scalar_program.h"

namespace llvm {
class Module;
}

namespace loipe::jit {

/// What the emitted kernel expects.
struct KernelShape {
  int lanes = 1;                    ///< examples per vector
  std::size_t scratch_vectors = 0;  ///< vectors of scratch that one call needs
};

/// The signature of an emitted kernel. It computes the tiles of `lanes` examples at the
/// byte offsets begin, begin + one vector, ..., before end.
using Kernel = void (*)(const void* const* in, void* const* out, void* scratch, std::int64_t begin,
                        std::int64_t end);

/// Emits straight-line code over one tile as a function NAME of type Kernel. Elements are
/// numbered through all arguments, and through all outputs. The lanes of argument element
/// p are at in[p] + offset, those of output element q go to out[q] + offset: so one kernel
/// serves every layout. Output elements that are constants are not written; if there are any, the function
/// with_constants(NAME) does the same and writes them too. Long programs are cut into functions, values
/// that cross a cut go through scratch, so compile time stays linear.
KernelShape emit_scalar_kernel(llvm::Module& module, const scalar::Program& program, int lanes,
                               const std::string& name);

std::string with_constants(const std::string& name);

/// The shape of the kernel that would be emitted.
KernelShape kernel_shape(const scalar::Program& program, int lanes);

}  // namespace loipe::jit
