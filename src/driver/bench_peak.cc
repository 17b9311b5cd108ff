// SPDX-License-Identifier: Apache-2.0
#include "driver/bench_peak.h"

namespace loipe {

namespace {

constexpr double kSeconds = 0.15;  // of each measurement

void add_arithmetic(PeakResult& result, int threads) {
  for (const FmaLoop& loop : fma_loops(result.dtype))
    result.fma.push_back({std::string(loop.simd), loop.bits, threads, fma_gflops(loop, threads, kSeconds)});
  // The loops are listed from the widest on, so that of these threads is the first.
  const std::size_t widest = result.fma.size() - fma_loops(result.dtype).size();
  result.speed.fma_gflops = result.fma[widest].gflops;
  for (const ProductSize size :
       {ProductSize{1, 64}, ProductSize{1, 256}, ProductSize{1, 1024}, ProductSize{32, 64}}) {
    const double gflops = product_gflops(size, result.dtype, threads, kSeconds);
    result.products.push_back({size, threads, gflops, gflops / result.speed.fma_gflops});
    if (size.rows == 1024) result.speed.gemm_gflops = gflops;
  }
}

void add_memory(PeakResult& result, int threads) {
  for (const MemoryLevel& level : memory_levels(threads))
    result.memory.push_back({level, threads, measure_memory(level, threads, kSeconds)});
}

}  // namespace

PeakResult bench_peak(DType dtype, int threads, const StageNote& note) {
  PeakResult result{.dtype = dtype,
                    .threads = threads,
                    .machine = this_machine(),
                    .speed = {},
                    .fma = {},
                    .products = {},
                    .memory = {}};
  std::vector<int> counts{1};
  if (threads > 1) counts.push_back(threads);
  for (int count : counts) {
    const std::string suffix = std::to_string(count) + (count == 1 ? " thread" : " threads");
    if (note) note("arithmetic, " + suffix);
    add_arithmetic(result, count);
    if (note) note("memory, " + suffix);
    add_memory(result, count);
  }
  return result;
}

}  // namespace loipe
