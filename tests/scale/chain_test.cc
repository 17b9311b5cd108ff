// SPDX-License-Identifier: Apache-2.0
// Long programs of scalars: time and memory grow with their length, nothing recurses
// over their depth.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdio>
#include <ctime>

#include "driver/pipeline.h"
#include "ir/builder.h"

namespace loipe {
namespace {

/// Processor time, which other processes do not count in.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double peak_gigabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);
}

/// x = sin(x)*c with values from a few steps before mixed in: the graph is as deep as it
/// is long, and elimination absorbs and fills in.
Program chain(std::int64_t operations) {
  Builder builder("chain");
  const Value x = builder.argument("x", {DType::f64, {}}), c = builder.argument("c", {DType::f64, {}});
  Value now = x, before = x;
  for (std::int64_t done = 0; done < operations; done += 8) {
    const Value sine = builder.emit("sin", {now});
    const Value scaled = builder.emit("mul", {sine, c});
    const Value mixed = builder.emit("add", {scaled, before});
    const Value root = builder.emit("sqrt", {builder.emit("abs", {mixed})});
    const Value halved = builder.emit("mul", {root, builder.scalar(0.5, DType::f64)});
    before = scaled;
    now = builder.emit("tanh", {builder.emit("sub", {halved, scaled})});
  }
  return builder.finish({now});
}

/// The derivatives by x and c, by forward differentiation with dual numbers.
struct Dual {
  double value, by_x, by_c;
  Dual times(double derivative, double new_value) const {
    return {new_value, derivative * by_x, derivative * by_c};
  }
};

Dual expected(std::int64_t operations, double x, double c) {
  Dual now{x, 1, 0}, before = now;
  const auto sum = [](const Dual& a, const Dual& b, double sign) {
    return Dual{a.value + sign * b.value, a.by_x + sign * b.by_x, a.by_c + sign * b.by_c};
  };
  for (std::int64_t done = 0; done < operations; done += 8) {
    const Dual sine = now.times(std::cos(now.value), std::sin(now.value));
    const Dual scaled{sine.value * c, sine.by_x * c, sine.by_c * c + sine.value};
    const Dual mixed = sum(scaled, before, 1);
    const double root = std::sqrt(std::abs(mixed.value));
    const Dual halved = mixed.times(0.25 / root * (mixed.value < 0 ? -1 : 1), root * 0.5);
    before = scaled;
    const Dual rest = sum(halved, scaled, -1);
    now = rest.times(1 - std::tanh(rest.value) * std::tanh(rest.value), std::tanh(rest.value));
  }
  return now;
}

struct Measured {
  double seconds;
  std::vector<Tensor> results;
};

/// From the program to its value and derivatives.
Measured run_chain(std::int64_t operations) {
  const double start = processor_seconds();
  const Program program = chain(operations);
  const Compilation compiled =
      compile(program, {.request = {floating_arguments(program), reverse_order(program), {}},
                        .passes = {},
                        .backend = "jit",
                        .backend_options = {.threads = 1}});
  std::vector<Tensor> results =
      compiled.executable->run(std::vector<Tensor>{Tensor::scalar(0.7), Tensor::scalar(1.1)});
  return {processor_seconds() - start, std::move(results)};
}

void expect_right(const Measured& measured, std::int64_t operations) {
  const Dual right = expected(operations, 0.7, 1.1);
  EXPECT_NEAR(measured.results[0].at(0), right.value, 1e-9);
  EXPECT_NEAR(measured.results[1].at(0), right.by_x, 1e-9 * std::max(1.0, std::abs(right.by_x)));
  EXPECT_NEAR(measured.results[2].at(0), right.by_c, 1e-9 * std::max(1.0, std::abs(right.by_c)));
}

/// The times are printed, not judged: t(1e6)/t(1e5) is about 10 on a quiet machine, and
/// anything quadratic would not end within the time that a test has.
TEST(Chain, AMillionOperationsEndToEnd) {
  for (std::int64_t operations : {std::int64_t{100'000}, std::int64_t{1'000'000}}) {
    const Measured measured = run_chain(operations);
    expect_right(measured, operations);
    std::printf("%lld operations: %.2f s of processor time, peak %.2f GB\n",
                static_cast<long long>(operations), measured.seconds, peak_gigabytes());
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(peak_gigabytes(), 4);
#endif
}

}  // namespace
}  // namespace loipe
