// SPDX-License-Identifier: Apache-2.0
#include "driver/machine.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <thread>

#include "backends/backend.h"
#include "backends/cpu/threads.h"
#include "driver/fma_loop.h"
#include "ir/builder.h"

namespace loipe {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

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

/// The shortest of many short trials: other processes can only make a trial slower.
template <class Trial>
double best_seconds(Trial trial) {
  constexpr double kSeconds = 0.4;
  constexpr int kFewestTrials = 3;
  double best = std::numeric_limits<double>::infinity();
  const Clock::time_point begin = Clock::now();
  for (int count = 0; count < kFewestTrials || seconds_since(begin) < kSeconds; ++count) {
    const Clock::time_point start = Clock::now();
    trial();
    best = std::min(best, seconds_since(start));
  }
  return best;
}

/// The threads run side by side, but each is timed by itself: on a busy machine they
/// would hardly ever all run through at the same time.
double measure_fma_gflops(const FmaLoop& loop, int threads) {
  constexpr std::int64_t kRounds = 400'000;  // about a millisecond
  std::vector<double> seconds(static_cast<std::size_t>(threads));
  cpu::parallel_for(threads, threads, [&](std::int64_t task, int) {
    seconds[static_cast<std::size_t>(task)] = best_seconds([&] { loop.run(kRounds); });
  });
  double rounds_per_second = 0;
  for (double time : seconds) rounds_per_second += static_cast<double>(kRounds) / time;
  return rounds_per_second * loop.operations_per_round * 1e-9;
}

double measure_gemm_gflops(DType dtype, int threads) {
  constexpr std::int64_t kSize = 1024;
  Builder builder("gemm");
  const TensorType square{dtype, {kSize, kSize}};
  const Value a = builder.argument("a", square), b = builder.argument("b", square);
  const Value product = builder.emit("dot_general", {a, b},
                                     {{"lhs_batch", Integers{}},
                                      {"lhs_contract", Integers{1}},
                                      {"rhs_batch", Integers{}},
                                      {"rhs_contract", Integers{0}}});
  const auto executable = find_backend("jit").compile(builder.finish({product}), {threads, 0});
  const std::vector<Tensor> arguments(2, Tensor(square));
  const double seconds = best_seconds([&] { executable->run(arguments); });
  return 2.0 * kSize * kSize * kSize / seconds * 1e-9;
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
  return {measure_fma_gflops(widest_fma_loop(dtype), threads), measure_gemm_gflops(dtype, threads)};
}

}  // namespace loipe
