// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backends/kernel/kernel.h"
#include "backends/llvm/op_emitter.h"

namespace loipe::jit {

/// Where a value is computed: once, once for every row of the last loop, or for every vector.
enum class Depth { everywhere, row, element };

/// The address of each access at the indices of the loops that are entered.
using Addresses = std::vector<llvm::Value*>;

/// Emits the body of a kernel on vectors of its lanes.
class KernelBody {
 public:
  KernelBody(llvm::Module& module, llvm::IRBuilder<>& builder, const kernel::Kernel& kernel);

  OpEmitter& ops() { return ops_; }
  /// A bool in memory is one byte.
  llvm::Type* memory_type(DType dtype) const;
  /// Computes the nodes of that depth; i is the index of the last loop.
  void compute(Depth depth, const Addresses& at, llvm::Value* i);
  llvm::Value* value(kernel::Id node) const { return values_[node]; }
  void store(kernel::Id access, llvm::Value* value, const Addresses& at, llvm::Value* i);

 private:
  Depth depth_of(const kernel::Node& node) const;
  llvm::Value* value_of(const kernel::Node& node, const Addresses& at, llvm::Value* i);
  llvm::Value* converted(llvm::Value* value, DType from, DType to);
  llvm::Value* from_memory(llvm::Value* value, DType dtype);
  llvm::Value* load(kernel::Id access, const Addresses& at, llvm::Value* i);
  llvm::Value* lane_positions(std::int64_t stride);
  llvm::Value* index(std::int64_t value) { return b_.getInt64(static_cast<std::uint64_t>(value)); }

  llvm::IRBuilder<>& b_;
  const kernel::Kernel& kernel_;
  OpEmitter ops_;
  int lane_count_;
  std::size_t last_;                  ///< the last loop
  std::vector<Depth> depths_;         ///< per node
  std::vector<llvm::Value*> values_;  ///< per node
};

}  // namespace loipe::jit
