// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/strided_view.h"

namespace loipe::cpu {

/// What a step sees of one run.
struct RunContext {
  std::byte* const* bases;  ///< where each buffer starts
  std::byte* scratch;       ///< one area of scratch_stride bytes per thread
  std::size_t scratch_stride;
  std::byte* shared;  ///< an area that all threads use
  int threads;

  template <class T>
  T* at(BufferId buffer, std::int64_t offset) const {
    return reinterpret_cast<T*>(bases[buffer]) + offset;
  }
  template <class T>
  T* scratch_of(int thread) const {
    return reinterpret_cast<T*>(scratch + static_cast<std::size_t>(thread) * scratch_stride);
  }
  /// Threads for work of so many elementary operations: forking costs about as
  /// much as 32 thousand of them on one thread.
  int threads_for(std::int64_t operations) const { return operations < 32768 ? 1 : threads; }
};

/// One prepared kernel call: shapes, strides and kernels are fixed, only the
/// buffers' addresses come with the run. Steps are immutable.
class Step {
 public:
  virtual ~Step() = default;
  virtual void run(const RunContext& context) const = 0;
  /// Scratch bytes that each thread needs during the step.
  virtual std::size_t scratch_bytes() const { return 0; }
  /// Bytes that all threads share during the step.
  virtual std::size_t shared_bytes() const { return 0; }
  /// Bytes that the step allocates by itself while it runs.
  virtual std::size_t heap_bytes() const { return 0; }
};

}  // namespace loipe::cpu
