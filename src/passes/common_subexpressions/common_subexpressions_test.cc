// SPDX-License-Identifier: Apache-2.0
#include "passes/common_subexpressions/common_subexpressions.h"

#include "passes/pass_testing.h"

namespace loipe::passes {
namespace {

const std::string kArguments = "%x: f64[2], %y: f64[2]";

TEST(CommonSubexpressions, FindsEqualNodesThroughChains) {
  expect_rewrite(common_subexpressions, kArguments,
                 "  %1 = exp(%x)\n  %2 = sub(%1, %y)\n  %3 = exp(%x)\n  %4 = sub(%3, %y)\n  return %2, %4\n",
                 "  %1 = exp(%x)\n  %2 = sub(%1, %y)\n  return %2, %2\n");
}

TEST(CommonSubexpressions, CommutativeOperandsHaveNoOrder) {
  for (const char* op : {"add", "mul", "max", "min", "eq", "ne"}) {
    const std::string first = "  %1 = " + std::string(op) + "(%y, %x)\n";
    expect_rewrite(common_subexpressions, kArguments, first + "  %2 = " + op + "(%x, %y)\n  return %1, %2\n",
                   first + "  return %1, %1\n");
  }
  for (const char* op : {"sub", "div", "rem", "pow", "atan2", "lt", "ge"})
    expect_unchanged(common_subexpressions, kArguments,
                     "  %1 = " + std::string(op) + "(%y, %x)\n  %2 = " + op + "(%x, %y)\n  return %1, %2\n");
  expect_rewrite(common_subexpressions, "%x: i32[], %y: i32[]",
                 "  %1 = xor(%x, %y)\n  %2 = xor(%y, %x)\n  return %1, %2\n",
                 "  %1 = xor(%x, %y)\n  return %1, %1\n");
}

TEST(CommonSubexpressions, AttributesAndOpsMatter) {
  expect_unchanged(common_subexpressions, "%x: f64[2,2]",
                   "  %1 = reduce_sum(%x) {axes=[0]}\n  %2 = reduce_sum(%x) {axes=[1]}\n"
                   "  %3 = reduce_max(%x) {axes=[0]}\n  return %1, %2, %3\n");
}

TEST(CommonSubexpressions, ConstantsAreComparedBitByBit) {
  expect_rewrite(common_subexpressions, "",
                 "  %c1 = constant {value=f64[](0.0)}\n  %c2 = constant {value=f64[](-0.0)}\n"
                 "  %c3 = constant {value=f32[](0.0)}\n  %c4 = constant {value=f64[](0.0)}\n"
                 "  return %c1, %c2, %c3, %c4\n",
                 "  %c1 = constant {value=f64[](0.0)}\n  %c2 = constant {value=f64[](-0.0)}\n"
                 "  %c3 = constant {value=f32[](0.0)}\n  return %c1, %c2, %c3, %c1\n");
}

TEST(CommonSubexpressions, ArgumentsOfOneTypeStayApart) {
  expect_unchanged(common_subexpressions, kArguments, "  %1 = exp(%x)\n  %2 = exp(%y)\n  return %1, %2\n");
}

}  // namespace
}  // namespace loipe::passes
