// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/cpu/strided_view.h"

namespace loipe::cpu {

enum class BufferKind : std::uint8_t { argument, output, constant, arena };

/// A piece of memory that steps read and write.
struct Buffer {
  BufferKind kind;
  std::size_t bytes;
  /// Number of the argument, output or constant; for an arena buffer its place in the arena.
  std::size_t position = 0;
  /// Steps that use it; an arena buffer exists from the first to the last.
  std::int32_t first_step = -1, last_step = -1;
};

/// "128 bytes at 64, steps 3 to 7", a line.
std::string to_text(const Buffer& buffer);

/// Gives every arena buffer a place (multiples of 64 bytes) so that buffers which
/// exist at the same time do not overlap, and returns the arena's size. Best fit
/// over the free gaps, in the order of first use; n log n. Without reuse every buffer has
/// a place of its own.
std::size_t plan_arena(std::vector<Buffer>& buffers, bool reuses = true);

}  // namespace loipe::cpu
