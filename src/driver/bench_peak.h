// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/bench.h"
#include "driver/machine_memory.h"
#include "driver/machine_products.h"

namespace loipe {

/// What this machine can do at best: the ceilings that `loipe bench` is read against.
struct PeakResult {
  struct Fma {
    std::string simd;
    int bits = 0;  ///< of one vector
    int threads = 1;
    double gflops = 0;
  };
  struct Product {
    ProductSize size;
    int threads = 1;
    double gflops = 0;
    double fraction_of_peak = 0;  ///< of the widest FMA loop on the same threads
  };
  struct Memory {
    MemoryLevel level;
    int threads = 1;
    MemorySpeed gb_per_second;
  };

  DType dtype = DType::f32;
  int threads = 1;
  Machine machine;
  MachineSpeed speed;  ///< the widest loop and 1024^3, on all threads
  std::vector<Fma> fma;
  std::vector<Product> products;
  std::vector<Memory> memory;
};

/// On one thread, and on `threads` where that is more.
PeakResult bench_peak(DType dtype, int threads, const StageNote& note = {});

}  // namespace loipe
