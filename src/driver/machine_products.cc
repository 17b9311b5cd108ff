// SPDX-License-Identifier: Apache-2.0
#include "driver/machine_products.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/threads.h"
#include "ir/builder.h"

namespace loipe {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The shortest of many short trials: other processes can only make a trial slower.
template <class Trial>
double best_seconds(Trial trial, double seconds) {
  constexpr int kFewestTrials = 3;
  double best = std::numeric_limits<double>::infinity();
  const Clock::time_point begin = Clock::now();
  for (int count = 0; count < kFewestTrials || seconds_since(begin) < seconds; ++count) {
    const Clock::time_point start = Clock::now();
    trial();
    best = std::min(best, seconds_since(start));
  }
  return best;
}

/// Batched only where there is a batch: a plain product must be measured as one.
Program product_program(ProductSize size, DType dtype) {
  Builder builder("product");
  TensorType type{dtype, {size.rows, size.rows}};
  const bool is_batched = size.count > 1;
  if (is_batched) type.shape.insert(type.shape.begin(), size.count);
  const Value a = builder.argument("a", type), b = builder.argument("b", type);
  const Integers batch = is_batched ? Integers{0} : Integers{};
  const std::int64_t row_axis = is_batched ? 1 : 0;
  return builder.finish({builder.emit("dot_general", {a, b},
                                      {{"lhs_batch", batch},
                                       {"lhs_contract", Integers{row_axis + 1}},
                                       {"rhs_batch", batch},
                                       {"rhs_contract", Integers{row_axis}}})});
}

/// Numbers like those of programs: zeros can be cheaper on some machines.
Tensor filled(const TensorType& type) {
  Tensor tensor(type);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, 1.0 / static_cast<double>(1 + i % 7));
  return tensor;
}

}  // namespace

/// The threads run side by side, but each is timed by itself: on a busy machine they
/// would hardly ever all run through at the same time.
double fma_gflops(const FmaLoop& loop, int threads, double seconds) {
  constexpr std::int64_t kRounds = 400'000;  // about a millisecond
  std::vector<double> best(static_cast<std::size_t>(threads));
  cpu::parallel_for(threads, threads, [&](std::int64_t task, int) {
    best[static_cast<std::size_t>(task)] = best_seconds([&] { loop.run(kRounds); }, seconds);
  });
  double rounds_per_second = 0;
  for (double time : best) rounds_per_second += static_cast<double>(kRounds) / time;
  return rounds_per_second * loop.operations_per_round * 1e-9;
}

double product_gflops(ProductSize size, DType dtype, int threads, double seconds) {
  const Program program = product_program(size, dtype);
  const auto executable = find_backend("jit").compile(program, {threads, 0});
  const std::vector<Tensor> arguments(2, filled(executable->argument_types()[0]));
  Tensor result(executable->output_types()[0]);
  const std::vector<ConstBytes> operands{arguments[0].bytes(), arguments[1].bytes()};
  const std::vector<Bytes> results{result.bytes()};
  executable->run(operands, results);  // pages and caches
  // Several runs in one trial, so that a small product outlasts the clock's steps.
  const double rows = static_cast<double>(size.rows);
  const double operations = 2.0 * static_cast<double>(size.count) * rows * rows * rows;
  const int runs = static_cast<int>(std::clamp(1e7 / operations, 1.0, 100.0));
  const auto trial = [&] {
    for (int i = 0; i < runs; ++i) executable->run(operands, results);
  };
  return runs * operations / best_seconds(trial, seconds) * 1e-9;
}

}  // namespace loipe
