// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backends/cpu/kernels/kernel_table.h"
#include "backends/cpu/lowering/pass_log.h"
#include "backends/kernel/kernel.h"

namespace loipe::cpu {

/// The kernels of a plan, and of plans inside it, which are compiled together when
/// lowering ends. Steps share it, as the code lives as long as it does.
class KernelCollector {
 public:
  /// Without `compiles`, no kernel can be compiled.
  explicit KernelCollector(const KernelTable& kernels, bool compiles = true, PassLog* log = nullptr);
  ~KernelCollector();

  /// What the functions call.
  const kernel::Helpers& helpers() const { return helpers_; }
  /// Bytes of the vectors that kernels are compiled for; 0 if none can be compiled.
  int vector_bytes() const;
  /// Where the kernel's function will be after compile(); null if it cannot be compiled.
  const kernel::Function* add(const kernel::Kernel& kernel);
  /// Compiles what was added since the last call.
  void compile();

 private:
  struct State;
  kernel::Helpers helpers_;
  PassLog* log_;
  std::unique_ptr<State> state_;
};

}  // namespace loipe::cpu
