// SPDX-License-Identifier: Apache-2.0
#include "backends/kernel/kernel.h"

#include <gtest/gtest.h>

#include <functional>

#include "backends/kernel/kernel_interpreter.h"
#include "base/check.h"

namespace loipe::kernel {
namespace {

using scalar::Op;

/// y[i][j] = x[i][j] * s[i] + 1 over 3 x 20.
Kernel scaled_rows() {
  Kernel kernel;
  kernel.extents = {3, 20};
  kernel.accesses = {{DType::f32, {20, 1}}, {DType::f32, {1, 0}}, {DType::f32, {20, 1}, true}};
  kernel.body = {{Kind::load, DType::f32, Op::add, {0}},
                 {Kind::load, DType::f32, Op::add, {1}},
                 {Kind::scalar, DType::f32, Op::mul, {0, 1}},
                 {Kind::constant, DType::f32, Op::add, {}, 1},
                 {Kind::scalar, DType::f32, Op::add, {2, 3}}};
  kernel.stores = {{2, 4}};
  kernel.lanes = 8;
  kernel.vectors = 2;
  kernel.chunk = 1;
  return kernel;
}

TEST(Kernel, PrintsAsText) {
  EXPECT_EQ(to_text(scaled_rows()),
            "kernel over [3, 20], 2 x 8 lanes, chunks of 1 in loop 0\n"
            "  a0: f32 read [20, 1]\n"
            "  a1: f32 read [1, 0]\n"
            "  a2: f32 written [20, 1]\n"
            "  %0 = load a0 : f32\n"
            "  %1 = load a1 : f32\n"
            "  %2 = mul %0, %1 : f32\n"
            "  %3 = constant 0x1p+0 : f32\n"
            "  %4 = add %2, %3 : f32\n"
            "  store a2, %4\n");
}

TEST(Kernel, InterpretsTiles) {
  const Kernel kernel = scaled_rows();
  std::vector<float> x(60), s{2, 3, 4}, y(60, -1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  std::byte* bases[] = {reinterpret_cast<std::byte*>(x.data()), reinterpret_cast<std::byte*>(s.data()),
                        reinterpret_cast<std::byte*>(y.data())};
  EXPECT_EQ(kernel.tiles(), 3);
  interpret(kernel, bases, 1, 3);
  for (std::size_t i = 0; i < 60; ++i) EXPECT_EQ(y[i], i < 20 ? -1 : x[i] * s[i / 20] + 1) << i;
}

/// The last chunk takes the rest.
TEST(Kernel, ChunksCoverTheLoop) {
  Kernel kernel = scaled_rows();
  kernel.extents = {7, 20};
  kernel.chunk = 3;
  EXPECT_EQ(kernel.chunks(), 2);
  EXPECT_EQ(kernel.tiles(), 2);
  kernel.chunked = 1;
  kernel.chunk = 16;
  EXPECT_EQ(kernel.tiles(), 7);
}

void expect_malformed(const std::string& message, const std::function<void(Kernel&)>& change) {
  Kernel kernel = scaled_rows();
  EXPECT_NO_THROW(verify(kernel));
  change(kernel);
  try {
    verify(kernel);
    FAIL() << "no error: " << message;
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  }
}

TEST(Kernel, VerifyFindsWhatIsMalformed) {
  expect_malformed("no loop", [](Kernel& k) { k.extents.clear(); });
  expect_malformed("empty loop", [](Kernel& k) { k.extents[0] = 0; });
  expect_malformed("more lanes than its last loop", [](Kernel& k) { k.vectors = 3; });
  expect_malformed("no chunks", [](Kernel& k) { k.chunked = 2; });
  expect_malformed("shorter than a vector", [](Kernel& k) { k.chunked = 1, k.chunk = 8; });
  expect_malformed("longer than its loop", [](Kernel& k) { k.chunk = 4; });
  expect_malformed("blocks of a kernel do not fit", [](Kernel& k) { k.block_rows = 4; });
  expect_malformed("another rank", [](Kernel& k) { k.accesses[0].strides = {1}; });
  expect_malformed("not contiguous along the rows", [](Kernel& k) { k.accesses[0].is_transposed = true; });
  expect_malformed("streamed access has a rest", [](Kernel& k) { k.accesses[2].is_streamed = true; });
  expect_malformed("streamed access is not aligned", [](Kernel& k) {
    k.extents = {3, 32};
    k.accesses[2].is_streamed = true;
  });
  expect_malformed("written access is not contiguous", [](Kernel& k) { k.accesses[2].strides = {1, 3}; });
  expect_malformed("loads from no access", [](Kernel& k) { k.body[0].operands[0] = 3; });
  expect_malformed("loads what it cannot", [](Kernel& k) { k.body[0].operands[0] = 2; });
  expect_malformed("before it is there", [](Kernel& k) { k.body[2].operands[1] = 3; });
  expect_malformed("mixes dtypes", [](Kernel& k) { k.body[3].dtype = DType::f64; });
  expect_malformed("another dtype than its op", [](Kernel& k) { k.body[4].dtype = DType::boolean; });
  expect_malformed("leaf of scalar programs", [](Kernel& k) { k.body[4].op = Op::constant; });
  expect_malformed("select of a kernel mixes dtypes", [](Kernel& k) { k.body[4].op = Op::select; });
  expect_malformed("computes integers",
                   [](Kernel& k) { k.body[4] = {Kind::convert, DType::i32, Op::add, {2}}; });
  expect_malformed("store has no operands", [](Kernel& k) { k.stores[0].value = 5; });
  expect_malformed("stores what it cannot", [](Kernel& k) { k.stores[0].access = 0; });
  expect_malformed("stores nothing", [](Kernel& k) { k.stores.clear(); });
  expect_malformed("reduction has no loops", [](Kernel& k) { k.reduction = Reduction::sum; });
}

}  // namespace
}  // namespace loipe::kernel
