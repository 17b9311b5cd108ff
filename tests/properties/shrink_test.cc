// SPDX-License-Identifier: Apache-2.0
// Shrinking, tried with artificial faults whose smallest cases are known.
#include "support/shrink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/op_def.h"
#include "ir/parser.h"
#include "support/random_program.h"

namespace loipe {
namespace {

using testing::Case;
using testing::random_arguments;
using testing::random_program;
using testing::shrink;
using testing::Shrunk;

Case random_case(std::uint64_t seed) {
  Case c{random_program(seed, {.nodes = 24, .all_sinks_are_outputs = true}), {}};
  c.arguments = random_arguments(c.program, seed);
  return c;
}

bool uses_op(const Program& program, std::string_view name) {
  for (std::uint32_t i = 0; i < program.size(); ++i)
    if (program.op(Value{i}).name.value == name) return true;
  return false;
}

/// "tanh and transpose do not work together."
std::string dislikes_tanh_and_transpose(const Case& c) {
  return uses_op(c.program, "tanh") && uses_op(c.program, "transpose") ? "both are there" : "";
}

TEST(Shrink, TwoOpsOfManyAreLeftWithTheSmallestOperands) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Case c = random_case(seed);
    if (dislikes_tanh_and_transpose(c).empty()) continue;
    ++found;
    const Shrunk shrunk = shrink(c, dislikes_tanh_and_transpose);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_string(shrunk.smallest));
    EXPECT_EQ(shrunk.violation, "both are there");
    // Two nodes on one argument, both axes of extent 1, or of the op's least rank.
    EXPECT_EQ(shrunk.smallest.program.size(), 3u + (shrunk.smallest.arguments.size() - 1));
    EXPECT_LE(shrunk.smallest.arguments.size(), 2u);
    for (const Tensor& argument : shrunk.smallest.arguments) {
      EXPECT_EQ(argument.element_count(), 1);
      EXPECT_EQ(argument.at(0), 0);
    }
    EXPECT_LE(shrunk.smallest.program.outputs().size(), 2u);
  }
  EXPECT_GT(found, 10);
}

TEST(Shrink, AFaultOfOneNodeIsItsNodeAlone) {
  const auto dislikes_slice = [](const Case& c) {
    return std::string(uses_op(c.program, "slice") ? "bad" : "");
  };
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Case c = random_case(seed);
    if (dislikes_slice(c).empty()) continue;
    ++found;
    const Shrunk shrunk = shrink(c, dislikes_slice);
    EXPECT_EQ(shrunk.smallest.program.size(), 2u) << to_string(shrunk.smallest);
    EXPECT_EQ(shrunk.smallest.program.outputs().size(), 1u);
  }
  EXPECT_GT(found, 10);
}

TEST(Shrink, TheSmallestCaseIsPrintedWithItsInputs) {
  Case c{program_from_text(R"(program long(%x: f64[4,3], %y: f64[3]) {
  %1 = sin(%x)
  %c1 = constant {value=f64[](0.123)}
  %2 = mul(%1, %c1)
  %3 = reduce_sum(%2) {axes=[0]}
  %4 = mul(%3, %y)
  %5 = exp(%4)
  %6 = sub(%5, %y)
  %7 = cos(%6)
  return %7, %2
})"),
         {}};
  c.arguments = random_arguments(c.program, 5);
  const Shrunk shrunk =
      shrink(c, [](const Case& v) { return std::string(uses_op(v.program, "exp") ? "no exp, please" : ""); });
  EXPECT_EQ(to_string(shrunk.smallest),
            "program long(%cut1: f64[1]) {\n"
            "  %1 = exp(%cut1) : f64[1]\n"
            "  return %1\n"
            "}\n"
            "cut1=f64[1](0.0)\n");
  EXPECT_EQ(shrunk.violation, "no exp, please");
  EXPECT_LT(shrunk.trials, 100);
}

/// Faults by value: the smallest case keeps the number that they need.
TEST(Shrink, NumbersThatMatterStay) {
  const Case c{program_from_text(R"(program p(%x: f64[3]) {
  %1 = neg(%x)
  %2 = tanh(%1)
  return %2
})"),
               {Tensor::of<double>({3}, {0.3, 7.625, -0.2})}};
  const auto is_large = [](const Case& v) {
    for (const Tensor& argument : v.arguments)
      for (std::int64_t i = 0; i < argument.element_count(); ++i)
        if (std::abs(argument.at(i)) > 5) return std::string("large");
    return std::string();
  };
  const Shrunk shrunk = shrink(c, is_large);
  EXPECT_THAT(to_string(shrunk.smallest), ::testing::HasSubstr("x=f64[2](0.0,7.0)"));
}

TEST(Shrink, ExceptionsAreFaults) {
  const auto throws = [](const Case& c) -> std::string {
    if (uses_op(c.program, "slice")) throw UserError("no slices today");
    return "";
  };
  for (std::uint64_t seed = 1;; ++seed)
    if (const Case c = random_case(seed); uses_op(c.program, "slice")) {
      const Shrunk shrunk = shrink(c, throws);
      EXPECT_EQ(shrunk.violation, "exception: no slices today");
      EXPECT_EQ(shrunk.smallest.program.size(), 2u) << to_string(shrunk.smallest);
      return;
    }
}

TEST(Shrink, ACaseWithoutAFaultStaysAsItIs) {
  const Case c = random_case(1);
  const Shrunk shrunk = shrink(c, [](const Case&) { return std::string(); });
  EXPECT_EQ(shrunk.violation, "");
  EXPECT_EQ(to_string(shrunk.smallest), to_string(c));
}

}  // namespace
}  // namespace loipe
