// SPDX-License-Identifier: Apache-2.0
#include "driver/machine.h"

#include <fstream>
#include <thread>

#include "backends/cpu/threads.h"
#include "driver/machine_products.h"

namespace loipe {

namespace {

/// The field of that name in /proc/cpuinfo.
std::string cpu_field(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

}  // namespace

Machine this_machine() {
  const std::string model = cpu_field("model name");
  return {model.empty() ? "unknown" : model, std::string(widest_fma_loop(DType::f32).simd),
          static_cast<int>(std::thread::hardware_concurrency())};
}

std::vector<std::string> optional_parts() {
  std::vector<std::string> parts;
#if defined(LOIPE_LLVM)
  parts.emplace_back("LLVM");
#endif
  return parts;
}

int thread_count(int requested) { return requested > 0 ? requested : cpu::available_threads(); }

MachineSpeed measure_speed(DType dtype, int threads) {
  constexpr double kSeconds = 0.4;  // of each, against a busy machine
  return {fma_gflops(widest_fma_loop(dtype), threads, kSeconds),
          product_gflops({1, 1024}, dtype, threads, kSeconds)};
}

}  // namespace loipe
