// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <string>
#include <vector>

namespace loipe {

/// The machine that runs this process.
struct Machine {
  std::string cpu;   ///< model name
  std::string simd;  ///< widest vectors: "avx512", "avx2", "neon" or "baseline"
  int cores = 0;     ///< that this process may use
};
Machine this_machine();

/// Optional libraries that this build uses.
std::vector<std::string> optional_parts();

/// Threads that 0 stands for.
int thread_count(int requested);

/// What it can do at best, measured now, in 1e9 operations per second. One FMA is two.
struct MachineSpeed {
  double fma_gflops = 0;   ///< multiply-adds on registers, widest vectors, all threads
  double gemm_gflops = 0;  ///< a matrix product of 1024^3 through the fast back end
};
MachineSpeed measure_speed(DType dtype, int threads);

}  // namespace loipe
