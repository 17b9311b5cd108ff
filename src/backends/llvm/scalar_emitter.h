// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// Emits straight-line code for one tile of `lanes` examples as the function
///
///   void NAME(const T* const* in, T* const* out, T* scratch)
///
/// in[k] + e*lanes points to the lanes of element e of argument k, out likewise. For an
/// argument or output of one element per example that is the plain array. Long
/// programs are cut into functions, values that cross a cut go through scratch, so
/// compile time stays linear.
KernelShape emit_scalar_kernel(llvm::Module& module, const scalar::Program& program, int lanes,
                               const std::string& name);

}  // namespace loipe::jit
