// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/arena.h"
#include "backends/cpu/step.h"

namespace loipe {
class Tensor;
}

namespace loipe::cpu {

/// What lowering makes of a program: steps in the order of execution, the buffers
/// they use (placed in the arena), and the constants.
struct Plan {
  std::vector<std::unique_ptr<const Step>> steps;
  std::vector<Buffer> buffers;
  std::vector<std::shared_ptr<const Tensor>> constants;
  std::size_t arena_bytes = 0;

  /// Bytes that every thread needs, and that all share, in multiples of a line of memory.
  std::size_t scratch_bytes() const;
  std::size_t shared_bytes() const;
  /// Bytes that steps allocate by themselves.
  std::size_t heap_bytes() const;
};

/// Bytes rounded up to whole lines of memory.
constexpr std::size_t whole_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace loipe::cpu
