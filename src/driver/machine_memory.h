// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace loipe {

/// A place where a working set fits.
struct MemoryLevel {
  std::string name;       ///< "L1", "L2", "L3" or "DRAM"
  std::size_t bytes = 0;  ///< working set of one thread, all its arrays together
};

/// The levels of this machine, sized for that many threads. A level that has no room
/// between its neighbours (an L3 that is small for its cores) is left out.
std::vector<MemoryLevel> memory_levels(int threads);

/// In 1e9 bytes per second, all threads together; bytes read and bytes written count.
struct MemorySpeed {
  double read = 0;   ///< sum of a
  double copy = 0;   ///< a = b
  double triad = 0;  ///< a = b + s c
};

/// Measured now, with ordinary stores of the widest vectors; takes about 3 times `seconds`.
MemorySpeed measure_memory(const MemoryLevel& level, int threads, double seconds);

}  // namespace loipe
