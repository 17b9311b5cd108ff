// SPDX-License-Identifier: Apache-2.0
// Subnormal numbers: kept unless the options say otherwise, on all threads alike.
#include "base/floating_mode.h"

#include <cstring>

#include "backends/backend_testing.h"

namespace loipe {
namespace {

/// x @ y of a size that is shared among threads; products of 1e-25 and 1e-16 are subnormal in f32.
Program product_program() {
  Builder b;
  const Value x = b.argument("x", {DType::f32, {256, 64}}), y = b.argument("y", {DType::f32, {64, 256}});
  return b.finish({b.emit("einsum", {x, y}, {{"spec", std::string("ab,bc->ac")}})});
}

std::vector<Tensor> tiny_operands() {
  Tensor x(TensorType{DType::f32, {256, 64}}), y(TensorType{DType::f32, {64, 256}});
  for (std::int64_t i = 0; i < x.element_count(); ++i) {
    x.set(i, 1e-25);
    y.set(i, 1e-16);
  }
  return {x, y};
}

bool is_all_zero(const Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    if (tensor.at(i) != 0) return false;
  return true;
}
bool has_zero(const Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    if (tensor.at(i) == 0) return true;
  return false;
}

bool can_flush() {
  const ScopedFloatingMode scope(FloatingMode::of_this_thread().flushing_subnormals());
  // Volatile, or the compiler may multiply before or after the scope.
  volatile float tiny = 1e-30f;
  volatile float product = tiny * 1e-10f;
  return product == 0;
}

TEST(FloatingModeTest, SubnormalsAreKeptUnlessFlushed) {
  if (!can_flush()) GTEST_SKIP() << "this processor's mode cannot be set";
  for (int threads : {1, 2}) {
    const auto keeps = find_backend("jit").compile(product_program(), {.threads = threads});
    const auto flushes =
        find_backend("jit").compile(product_program(), {.threads = threads, .flush_subnormals = true});
    // In turns: a thread does not stay in the mode of the run before.
    for (int turn = 0; turn < 20; ++turn) {
      EXPECT_FALSE(has_zero(keeps->run(tiny_operands())[0]));
      EXPECT_TRUE(is_all_zero(flushes->run(tiny_operands())[0]));
    }
  }
}

TEST(FloatingModeTest, TheCallersModeIsThatOfAllThreadsAndStays) {
  if (!can_flush()) GTEST_SKIP() << "this processor's mode cannot be set";
  const auto executable = find_backend("jit").compile(product_program(), {.threads = 2});
  EXPECT_FALSE(has_zero(executable->run(tiny_operands())[0]));
  const FloatingMode before = FloatingMode::of_this_thread();
  {
    const ScopedFloatingMode scope(before.flushing_subnormals());
    for (int turn = 0; turn < 20; ++turn) EXPECT_TRUE(is_all_zero(executable->run(tiny_operands())[0]));
    EXPECT_EQ(FloatingMode::of_this_thread(), before.flushing_subnormals());
  }
  EXPECT_EQ(FloatingMode::of_this_thread(), before);
  EXPECT_FALSE(has_zero(executable->run(tiny_operands())[0]));
}

}  // namespace
}  // namespace loipe
