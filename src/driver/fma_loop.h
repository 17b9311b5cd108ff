// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace loipe {

/// A loop of independent multiply-adds that never leaves registers: no program of this
/// dtype can be faster on the CPU.
struct FmaLoop {
  std::string_view simd;  ///< "avx512", "avx2", "neon" or "baseline"
  int bits;               ///< of one vector
  void (*run)(std::int64_t rounds);
  double operations_per_round;
};

/// One loop for each vector width of the running CPU, the widest first.
std::vector<FmaLoop> fma_loops(DType dtype);
/// The loop for the widest vectors of the running CPU.
FmaLoop widest_fma_loop(DType dtype);

}  // namespace loipe
