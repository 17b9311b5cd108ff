// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/kernel/kernel.h"
#include "backends/llvm/jit_session.h"

namespace loipe::jit {

/// Compiles kernels for the running CPU, many in one go. Equal kernels become one
/// function. The code lives as long as the compiler.
class KernelCompiler {
 public:
  explicit KernelCompiler(Level level);
  ~KernelCompiler();

  /// Whether all functions of the body exist on this machine.
  static bool supports(const kernel::Kernel& kernel);

  /// Where the function of the kernel will be found after compile().
  const kernel::Function* add(const kernel::Kernel& kernel);
  /// Compiles what was added since the last call.
  void compile();

  std::size_t functions() const { return functions_.size(); }

 private:
  struct Pending {
    kernel::Kernel kernel;
    std::size_t function;
  };
  Level level_;
  std::unique_ptr<Session> session_;
  std::unordered_map<std::string, std::size_t> known_;  ///< by text
  std::deque<kernel::Function> functions_;              ///< addresses stay
  std::vector<Pending> pending_;
};

}  // namespace loipe::jit
