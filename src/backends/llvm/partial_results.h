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
  /// Takes the value of a vector in; of lanes before `first` it was taken before. Null
  /// if all are new.
  void add(std::size_t store, int vector, llvm::Value* value, llvm::Value* first);
  llvm::Value* of_vector(std::size_t store, int vector);
  /// All lanes of all vectors as one number.
  llvm::Value* of_all(std::size_t store);
  /// They are emitted as variables; this makes them values when the function is complete.
  void promote(llvm::Function& function);

 private:
  DType dtype_of(std::size_t store) const;
  llvm::Constant* start_of(std::size_t store) const;
  llvm::Value* combined(llvm::Value* best, llvm::Value* x);
  llvm::Value* across_vectors(std::size_t store);
  llvm::Value* across_lanes(llvm::Value* vector);

  llvm::IRBuilder<>& b_;
  OpEmitter& ops_;
  const kernel::Kernel& kernel_;
  int lane_count_;
  std::vector<std::vector<llvm::Value*>> partials_;  ///< per store and vector, for reduced ones
};

}  // namespace loipe::jit
