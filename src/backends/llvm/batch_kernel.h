// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "backends/backend.h"
#include "backends/llvm/jit_session.h"
#include "ir/program.h"

namespace loipe::jit {

struct BatchOptions {
  /// Absent: full, but quick for long programs, where thinking outgrows what it gains.
  std::optional<Level> level = {};
  int threads = 0;  ///< 0: all cores; results do not depend on it
  bool use_code_cache = true;
  int lanes = 0;  ///< examples per vector; 0: what the running CPU adds in one instruction
  /// Threads, and then the tiles that pass through the workspace at a time, become fewer until it is as
  /// small or they are 1 each; 0: no limit. Results do not depend on it.
  std::size_t most_workspace_bytes = 0;
};

/// A program of one example compiled to straight-line code that runs on one vector
/// of examples at a time. Immutable; any number of threads may run it.
class BatchKernel {
 public:
  /// Unsupported, with the reasons, for a program without scalar form.
  BatchKernel(const Program& program, const BatchOptions& options);
  ~BatchKernel();

  /// Sizes are checked, and there is an example. Allocates nothing once as many threads
  /// as ever have called it at the same time.
  void run(const BatchRun& run) const;

  int lanes() const;
  /// Memory that one run needs beside arguments and results.
  std::size_t workspace_bytes() const;
  std::size_t node_count() const;
  /// Scalar operations of one example.
  std::int64_t operations() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace loipe::jit
