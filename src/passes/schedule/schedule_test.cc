// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/schedule.h"

#include "ir/builder.h"
#include "passes/pass_testing.h"
#include "passes/random_program.h"

namespace loipe::passes {
namespace {

TEST(Schedule, CountsLiveBytes) {
  const auto peak = [](const std::string& body) {
    return peak_live_bytes(program_from_text(program_text("%x: f64[4]", body)));
  };
  EXPECT_EQ(peak("  return %x\n"), 0);
  EXPECT_EQ(peak("  %1 = exp(%x)\n  return %1\n"), 32);
  EXPECT_EQ(peak("  %1 = exp(%x)\n  %2 = exp(%1)\n  %3 = exp(%2)\n  return %3\n"), 64);
  EXPECT_EQ(peak("  %1 = exp(%x)\n  %2 = exp(%1)\n  %3 = exp(%2)\n  return %3, %1\n"), 96);
  EXPECT_EQ(peak("  %1 = exp(%x)\n  %2 = mul(%1, %1)\n  return %2, %2\n"), 64);
  // Dead at once.
  EXPECT_EQ(peak("  %1 = exp(%x)\n  %2 = exp(%x)\n  return\n"), 32);
}

TEST(Schedule, WhatIsUsedSoonComesLate) {
  const std::string four =
      "  %1 = exp(%x)\n  %2 = sin(%x)\n  %3 = cos(%x)\n  %4 = reduce_sum(%1) {axes=[0]}\n"
      "  %5 = reduce_sum(%2) {axes=[0]}\n  %6 = reduce_sum(%3) {axes=[0]}\n";
  expect_rewrite(schedule, "%x: f64[9]", four + "  return %4, %5, %6\n",
                 "  %1 = exp(%x)\n  %2 = reduce_sum(%1) {axes=[0]}\n  %3 = sin(%x)\n"
                 "  %4 = reduce_sum(%3) {axes=[0]}\n  %5 = cos(%x)\n  %6 = reduce_sum(%5) {axes=[0]}\n"
                 "  return %2, %4, %6\n");
}

TEST(Schedule, TheLargerNeedComesFirst) {
  // The second operand passes a matrix, of which a number stays.
  expect_rewrite(schedule, "%x: f64[9], %s: f64[]",
                 "  %1 = exp(%s)\n  %2 = broadcast_in_dim(%1) {shape=[5],dimensions=[]}\n"
                 "  %3 = exp(%x)\n  %4 = reduce_sum(%3) {axes=[0]}\n  %5 = mul(%2, %4)\n  return %5\n",
                 "  %1 = exp(%x)\n  %2 = reduce_sum(%1) {axes=[0]}\n  %3 = exp(%s)\n"
                 "  %4 = broadcast_in_dim(%3) {shape=[5],dimensions=[]}\n  %5 = mul(%4, %2)\n  return %5\n");
}

TEST(Schedule, KeepsAnOrderThatIsAsGood) {
  expect_unchanged(schedule, "%x: f64[2], %y: f64[2]",
                   "  %1 = exp(%y)\n  %2 = exp(%x)\n  %3 = sub(%2, %1)\n  return %3\n");
}

TEST(Schedule, NeverRaisesThePeak) {
  std::size_t lower = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    const Program before = RandomProgram(seed).program, after = schedule(before);
    SCOPED_TRACE("seed " + std::to_string(seed));
    EXPECT_LE(peak_live_bytes(after), peak_live_bytes(before));
    lower += peak_live_bytes(after) < peak_live_bytes(before);
  }
  EXPECT_GT(lower, 20U);
}

/// A chain, which would overflow a recursion, and as many nodes that wait for its end.
TEST(Schedule, LongPrograms) {
  constexpr int kLength = 100'000;
  Builder b;
  std::vector<Value> chain{b.argument("x", {DType::f64, {}})};
  std::vector<Value> waiting;
  for (int i = 0; i < kLength; ++i) {
    chain.push_back(b.emit("sin", {chain.back()}));
    waiting.push_back(b.emit("cos", {chain.back()}));
  }
  Value sum = waiting.back();
  for (int i = kLength - 1; i-- > 0;) sum = b.emit("add", {sum, waiting[static_cast<std::size_t>(i)]});
  const Program program = b.finish({sum}), after = schedule(program);
  verify(after);
  EXPECT_LE(peak_live_bytes(after), peak_live_bytes(program));
}

}  // namespace
}  // namespace loipe::passes
