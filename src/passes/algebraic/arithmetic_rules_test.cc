// SPDX-License-Identifier: Apache-2.0
#include "passes/algebraic/algebraic.h"
#include "passes/pass_testing.h"

namespace loipe::passes {
namespace {

const std::string kArguments = "%x: f64[2], %y: f64[2]";

std::string scalar(const std::string& number) { return "  %c1 = constant {value=f64[](" + number + ")}\n"; }

TEST(ArithmeticRules, FactorsAndDivisorsOfOne) {
  for (const char* node : {"mul(%x, %c1)", "mul(%c1, %x)", "div(%x, %c1)"}) {
    const std::string body = "  %1 = " + std::string(node) + "\n  return %1\n";
    expect_rewrite(algebraic, kArguments, scalar("1.0") + body, "  return %x\n");
    expect_rewrite(algebraic, kArguments, scalar("-1.0") + body, "  %1 = neg(%x)\n  return %1\n");
    expect_unchanged(algebraic, kArguments, scalar("0.0") + body);
    expect_unchanged(algebraic, kArguments, scalar("2.0") + body);
  }
  expect_unchanged(algebraic, kArguments, scalar("1.0") + "  %1 = div(%c1, %x)\n  return %1\n");
}

TEST(ArithmeticRules, OnesOfAnyShapeSpreadTheOtherOperand) {
  expect_rewrite(algebraic, "%x: f64[2,1]",
                 "  %c1 = constant {value=f64[1,3](1.0,1.0,1.0)}\n  %1 = mul(%x, %c1)\n  return %1\n",
                 "  %1 = broadcast_in_dim(%x) {dimensions=[0,1], shape=[2,3]}\n  return %1\n");
  expect_rewrite(algebraic, "%x: f64[]",
                 scalar("1.0") +
                     "  %1 = broadcast_in_dim(%c1) {dimensions=[], shape=[4]}\n"
                     "  %2 = mul(%1, %x)\n  return %2\n",
                 "  %1 = broadcast_in_dim(%x) {dimensions=[], shape=[4]}\n  return %1\n");
}

TEST(ArithmeticRules, SignsCancel) {
  const std::string signs = "  %1 = neg(%x)\n  %2 = neg(%y)\n";
  const auto expect = [&](const std::string& node, const std::string& expected) {
    expect_rewrite(algebraic, kArguments, signs + "  %3 = " + node + "\n  return %3\n",
                   "  %1 = " + expected + "\n  return %1\n");
  };
  expect("add(%x, %2)", "sub(%x, %y)");
  expect("add(%1, %y)", "sub(%y, %x)");
  expect("sub(%x, %2)", "add(%x, %y)");
  expect("sub(%1, %2)", "sub(%y, %x)");
  expect("mul(%1, %2)", "mul(%x, %y)");
  expect("div(%1, %2)", "div(%x, %y)");
  expect_rewrite(algebraic, kArguments, "  %1 = neg(%x)\n  %2 = neg(%1)\n  return %2\n", "  return %x\n");
  for (const char* node : {"sub(%1, %y)", "mul(%1, %y)", "div(%x, %2)", "max(%1, %2)"})
    expect_unchanged(
        algebraic, kArguments,
        "  %1 = neg(%x)\n  %2 = neg(%y)\n  %3 = " + std::string(node) + "\n  return %1, %2, %3\n");
  // -(x - x) is -0, x - x is +0.
  expect_unchanged(algebraic, kArguments, "  %1 = sub(%x, %y)\n  %2 = neg(%1)\n  return %2\n");
}

TEST(ArithmeticRules, ZeroSummandsGoOnlyWithTheRightSign) {
  const auto body = [](const std::string& node) { return "  %1 = " + node + "\n  return %1\n"; };
  const std::string zero = scalar("0.0"), minus_zero = scalar("-0.0");
  expect_rewrite(algebraic, kArguments, minus_zero + body("add(%x, %c1)"), "  return %x\n");
  expect_rewrite(algebraic, kArguments, minus_zero + body("add(%c1, %x)"), "  return %x\n");
  expect_rewrite(algebraic, kArguments, zero + body("sub(%x, %c1)"), "  return %x\n");
  expect_rewrite(algebraic, kArguments, minus_zero + body("sub(%c1, %x)"), body("neg(%x)"));
  expect_unchanged(algebraic, kArguments, zero + body("add(%x, %c1)"));
  expect_unchanged(algebraic, kArguments, minus_zero + body("sub(%x, %c1)"));
  expect_unchanged(algebraic, kArguments, zero + body("sub(%c1, %x)"));
  expect_unchanged(algebraic, kArguments, zero + body("mul(%c1, %x)"));
}

TEST(ArithmeticRules, Integers) {
  const auto expect = [](const std::string& constant, const std::string& node, const std::string& expected) {
    expect_rewrite(algebraic, "%x: i32[2]",
                   "  %c1 = constant {value=i32[](" + constant + ")}\n  %1 = " + node + "\n  return %1\n",
                   expected);
  };
  expect("0", "add(%x, %c1)", "  return %x\n");
  expect("0", "sub(%x, %c1)", "  return %x\n");
  expect("0", "sub(%c1, %x)", "  %1 = neg(%x)\n  return %1\n");
  expect("0", "mul(%x, %c1)",
         "  %c1 = constant {value=i32[](0)}\n  %1 = broadcast_in_dim(%c1) {dimensions=[], shape=[2]}\n"
         "  return %1\n");
  // The smallest integer is its own negative, so signs do not cancel in a quotient.
  expect_unchanged(algebraic, "%x: i32[2], %y: i32[2]",
                   "  %1 = neg(%x)\n  %2 = neg(%y)\n  %3 = div(%1, %2)\n  return %3\n");
}

TEST(ArithmeticRules, IntegerPowers) {
  const auto power = [](int y) {
    return "  %1 = integer_pow(%x) {y=" + std::to_string(y) + "}\n  return %1\n";
  };
  expect_rewrite(algebraic, kArguments, power(1), "  return %x\n");
  expect_rewrite(algebraic, kArguments, power(0),
                 scalar("1.0") + "  %1 = broadcast_in_dim(%c1) {dimensions=[], shape=[2]}\n  return %1\n");
  expect_rewrite(algebraic, kArguments, power(-1), scalar("1.0") + "  %1 = div(%c1, %x)\n  return %1\n");
  expect_unchanged(algebraic, kArguments, power(2));
}

TEST(ArithmeticRules, Conversions) {
  const auto convert = [](const std::string& there, const std::string& back) {
    return "  %1 = convert_element_type(%x) {dtype=" + there +
           "}\n  %2 = convert_element_type(%1) {dtype=" + back + "}\n  return %2\n";
  };
  expect_rewrite(algebraic, "%x: f64[2]", convert("f64", "f64"), "  return %x\n");
  expect_rewrite(algebraic, "%x: f32[2]", convert("f64", "f32"), "  return %x\n");
  expect_rewrite(algebraic, "%x: i32[2]", convert("f64", "i32"), "  return %x\n");
  expect_rewrite(algebraic, "%x: bool[2]", convert("f32", "bool"), "  return %x\n");
  expect_unchanged(algebraic, "%x: f64[2]", convert("f32", "f64"));
  expect_unchanged(algebraic, "%x: i32[2]", convert("f32", "i32"));
  expect_unchanged(algebraic, "%x: i64[2]", convert("f64", "i64"));
}

TEST(LogicRules, SelectWhoseOutcomeIsKnown) {
  expect_rewrite(algebraic, "%c: bool[2], %x: f64[2]", "  %1 = select(%c, %x, %x)\n  return %1\n",
                 "  return %x\n");
  expect_rewrite(algebraic, "%x: f64[2], %y: f64[]",
                 "  %c1 = constant {value=bool[](0)}\n  %1 = select(%c1, %x, %y)\n  return %1\n",
                 "  %1 = broadcast_in_dim(%y) {dimensions=[], shape=[2]}\n  return %1\n");
  expect_rewrite(algebraic, "%x: f64[2], %y: f64[]",
                 "  %c1 = constant {value=bool[2](1,1)}\n  %1 = select(%c1, %x, %y)\n  return %1\n",
                 "  return %x\n");
  expect_rewrite(algebraic, "%c: bool[2], %x: f64[2], %y: f64[2]",
                 "  %1 = not(%c)\n  %2 = select(%1, %x, %y)\n  return %2\n",
                 "  %1 = select(%c, %y, %x)\n  return %1\n");
  expect_unchanged(algebraic, "%x: f64[2], %y: f64[2]",
                   "  %c1 = constant {value=bool[2](1,0)}\n  %1 = select(%c1, %x, %y)\n  return %1\n");
}

TEST(LogicRules, AndOrNot) {
  const auto expect = [](const std::string& constant, const std::string& node, const std::string& expected) {
    expect_rewrite(algebraic, "%p: bool[2]",
                   "  %c1 = constant {value=bool[2](" + constant + ")}\n  %1 = " + node + "\n  return %1\n",
                   expected);
  };
  const std::string no = "  %c1 = constant {value=bool[2](0,0)}\n  return %c1\n";
  expect("1,1", "and(%p, %c1)", "  return %p\n");
  expect("0,0", "or(%c1, %p)", "  return %p\n");
  expect("0,0", "and(%p, %c1)", no);
  expect_rewrite(algebraic, "%p: bool[2]", "  %1 = not(%p)\n  %2 = not(%1)\n  return %2\n", "  return %p\n");
  expect_rewrite(
      algebraic, "%x: i32[2]",
      "  %1 = and(%x, %x)\n  %2 = or(%1, %x)\n  %3 = max(%2, %x)\n  %4 = min(%3, %x)\n  return %4\n",
      "  return %x\n");
  expect_unchanged(algebraic, "%x: i32[2]",
                   "  %c1 = constant {value=i32[](1)}\n  %1 = and(%x, %c1)\n  return %1\n");
}

TEST(ArithmeticRules, StopGradientStays) {
  expect_unchanged(algebraic, kArguments, "  %1 = stop_gradient(%x)\n  return %1\n");
}

}  // namespace
}  // namespace loipe::passes
