// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace loipe {

/// What a loop works on: arrays of `bytes` each, a multiple of kMemoryLoopStep.
struct MemoryArrays {
  std::byte *a, *b, *c;
  std::size_t bytes;
};
inline constexpr std::size_t kMemoryLoopStep = 512;

using MemoryLoop = void (*)(const MemoryArrays&);

struct MemoryLoops {
  MemoryLoop read;   ///< sum of a
  MemoryLoop copy;   ///< a = b
  MemoryLoop triad;  ///< a = b + s c
};

/// With the widest vectors of the running CPU.
MemoryLoops memory_loops();

}  // namespace loipe
