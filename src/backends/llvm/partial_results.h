// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backends/kernel/kernel.h"
#include "backends/llvm/op_emitter.h"

namespace loipe::jit {

/// The partial results of the reduced stores of a kernel: one vector for each vector of
/// a step, whose lanes reduce each for itself.
class PartialResults {
 public:
  /// Declares them where the builder stands, the entry of the function.
  PartialResults(llvm::IRBuilder<>& builder, OpEmitter& ops, const kernel::Kernel& kernel);

  void start();
  /// Takes the value of a vector in.
  void add(std::size_t store, int vector, llvm::Value* value);
  llvm::Value* of_vector(std::size_t store, int vector);
  /// They are emitted as variables; this makes them values when the function is complete.
  void promote(llvm::Function& function);

 private:
  DType dtype_of(std::size_t store) const;
  llvm::Constant* start_of(std::size_t store) const;
  llvm::Value* combined(llvm::Value* best, llvm::Value* x);

  llvm::IRBuilder<>& b_;
  OpEmitter& ops_;
  const kernel::Kernel& kernel_;
  std::vector<std::vector<llvm::Value*>> partials_;  ///< per store and vector, for reduced ones
};

}  // namespace loipe::jit
