// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <chrono>
#include <limits>

#include "backends/backend.h"
#include "backends/code_cache.h"
#include "driver/machine.h"
#include "driver/time_model.h"
#include "ir/builder.h"
#include "ops/emit.h"

namespace loipe {

namespace {

constexpr DType kType = DType::f32;

constexpr double kMinimum = 1e-13;  ///< where the clock sees nothing

/// The shortest of many runs: other processes can only make one slower.
double seconds_of(const Program& program) {
  using Clock = std::chrono::steady_clock;
  constexpr double kSeconds = 0.06;
  constexpr int kFewestTrials = 3;
  const auto executable = find_backend("jit").compile(program);
  std::vector<Tensor> arguments, results;
  for (const TensorType& type : executable->argument_types()) {
    arguments.emplace_back(type);
    for (std::int64_t i = 0; i < arguments.back().element_count(); ++i)
      arguments.back().set(i, 1.0 / static_cast<double>(1 + i % 7));
  }
  for (const TensorType& type : executable->output_types()) results.emplace_back(type);
  const std::vector<ConstBytes> operands = [&] {
    std::vector<ConstBytes> list;
    for (const Tensor& tensor : arguments) list.push_back(tensor.bytes());
    return list;
  }();
  std::vector<Bytes> outputs;
  for (Tensor& tensor : results) outputs.push_back(tensor.bytes());
  double best = std::numeric_limits<double>::infinity();
  const Clock::time_point begin = Clock::now();
  for (int trial = 0; trial < kFewestTrials || Clock::now() - begin < std::chrono::duration<double>(kSeconds);
       ++trial) {
    const Clock::time_point start = Clock::now();
    executable->run(operands, outputs);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

/// x, f(x), f(f(x)), ... of one shape: `length` nodes that depend on each other.
template <typename Apply>
Program chain(const Shape& shape, int length, Apply apply) {
  Builder builder("chain");
  const Value x = builder.argument("x", {kType, shape}), y = builder.argument("y", {kType, shape});
  Value value = x;
  for (int k = 0; k < length; ++k) value = apply(builder, value, y);
  return builder.finish({value});
}

/// Seconds of one more node, from a short and a long chain.
template <typename Apply>
double seconds_per_node(const Shape& shape, int length, Apply apply) {
  const double few = seconds_of(chain(shape, length, apply));
  const double many = seconds_of(chain(shape, 3 * length, apply));
  return std::max(0.0, many - few) / (2 * length);
}

Value product(Builder& b, Value x, Value y) {
  return b.emit("dot_general", {x, y},
                {{"lhs_batch", Integers{}},
                 {"lhs_contract", Integers{1}},
                 {"rhs_batch", Integers{}},
                 {"rhs_contract", Integers{0}}});
}

Value scaled(Builder& b, Value x, Value y) { return b.emit("mul", {x, y}); }
Value divided(Builder& b, Value x, Value y) { return b.emit("div", {y, x}); }
Value bent(Builder& b, Value x, Value) { return ops::sin(b, x); }

}  // namespace

TimeConstants measure_time_constants() {
  TimeConstants constants;
  constexpr std::int64_t kSmall = 4, kSide = 256, kCached = 1 << 13, kLarge = 1 << 22;
  const auto per = [](double seconds, std::int64_t count) {
    return std::max(seconds / static_cast<double>(count), kMinimum);
  };
  constants.scalar = per(seconds_per_node({}, 200, scaled), 1);
  constants.scalar_division = per(seconds_per_node({}, 200, divided), 1);
  constants.scalar_function = per(seconds_per_node({}, 100, bent), 1);
  constants.launch = per(seconds_per_node({kSmall, kSmall}, 20, product), 1);
  constants.product = per(seconds_per_node({kSide, kSide}, 2, product), 2 * kSide * kSide * kSide);
  constants.sum = per(seconds_per_node({kCached}, 20, scaled), kCached);
  constants.division = per(seconds_per_node({kCached}, 20, divided), kCached);
  constants.function = per(seconds_per_node({kCached}, 10, bent), kCached);
  // Two arrays are read and one is written.
  constants.byte = per(seconds_of(chain({kLarge}, 1, scaled)), 3 * 4 * kLarge);
  return constants;
}

TimeConstants time_constants_of_this_machine() {
  const Machine machine = this_machine();
  std::string key = "time-1-" + machine.cpu + "-" + machine.simd + "-" + std::to_string(machine.cores);
  for (char& letter : key)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '-';
  const CodeCache cache;
  if (const auto stored = cache.load(key))
    if (const auto constants = time_constants_from_text(*stored)) return *constants;
  const TimeConstants constants = measure_time_constants();
  cache.store(key, to_text(constants));
  return constants;
}

}  // namespace loipe
