// SPDX-License-Identifier: Apache-2.0
// The time model is a sum over nodes; its constants survive being written.
#include "driver/time_model.h"

#include <gtest/gtest.h>

#include "driver/counted_cost.h"
#include "ir/parser.h"

namespace loipe {
namespace {

const TimeConstants kConstants{.launch = 100,
                               .product = 2,
                               .sum = 3,
                               .byte = 0.25,
                               .division = 5,
                               .function = 7,
                               .scalar = 11,
                               .scalar_division = 13,
                               .scalar_function = 17};

double seconds_of(const char* text) { return predicted_seconds(program_from_text(text), kConstants); }

TEST(TimeModel, NumbersCostTheirOperations) {
  EXPECT_EQ(seconds_of("program p(%x: f32[]) {\n  %1 = sin(%x)\n  %2 = mul(%1, %x)\n  %3 = div(%2, %x)\n  "
                       "%4 = add(%3, %1)\n  return %4\n}"),
            17 + 11 + 13 + 11);
}

TEST(TimeModel, ArraysCostAKernelAndOperationsOrBytes) {
  // 4 multiplications at 3; 48 bytes at 0.25.
  EXPECT_EQ(seconds_of("program p(%x: f32[4]) {\n  %1 = mul(%x, %x)\n  return %1\n}"), 100 + 12);
  EXPECT_EQ(seconds_of("program p(%x: f32[4]) {\n  %1 = sin(%x)\n  return %1\n}"), 100 + 28);
  EXPECT_EQ(seconds_of(
                "program p(%x: f32[4]) {\n  %1 = broadcast_in_dim(%x) {dimensions = [1], shape = [100,4]}\n  "
                "return %1\n}"),
            100 + 0.25 * (16 + 1600));
}

TEST(TimeModel, AContractionCostsItsProducts) {
  const double seconds = seconds_of(
      "program p(%x: f32[10,10], %y: f32[10,10]) {\n  %1 = dot_general(%x, %y) {lhs_contract = [1], "
      "rhs_contract = [0], lhs_batch = [], rhs_batch = []}\n  return %1\n}");
  EXPECT_NEAR(seconds, 100 + 2 * 2000, 2 * 100) << "additions may be one fewer per element";
}

TEST(TimeModel, ReshapesAndConstantsAreFree) {
  EXPECT_EQ(seconds_of("program p(%x: f32[4]) {\n  %1 = reshape(%x) {shape = [2,2]}\n  return %1\n}"), 0);
}

TEST(TimeModel, ConstantsAreWrittenAndRead) {
  TimeConstants constants;
  constants.launch = 1.0 / 3;
  constants.byte = 1e-13 / 7;
  EXPECT_EQ(time_constants_from_text(to_text(constants)), constants);
  for (const char* text :
       {"", "1", "nan\n", "0\n0\n0\n", "0\n0\n0\n0\n0\n0\n0\n0\n-1\n", "0\n0\n0\n0\n0\n0\n0\n0\n0\n0\n"})
    EXPECT_EQ(time_constants_from_text(text), std::nullopt) << text;
}

TEST(TimeModel, ThisMachineHasConstantsAboveZero) {
  const TimeConstants constants = measure_time_constants();
  const TimeConstants none;
  for (double TimeConstants::* const field :
       {&TimeConstants::launch, &TimeConstants::product, &TimeConstants::sum, &TimeConstants::byte,
        &TimeConstants::division, &TimeConstants::function, &TimeConstants::scalar,
        &TimeConstants::scalar_division, &TimeConstants::scalar_function}) {
    EXPECT_GT(constants.*field, 0);
    EXPECT_EQ(none.*field, 0);
  }
}

/// What search lowers is what count tells.
TEST(CountedCost, IsThatOfTheCounts) {
  for (const char* name : {"RoeFlux_1d", "g", "Perceptron", "Encoder"}) {
    const Subject subject({name, {}, {}});
    const Program program = subject.program();
    const CountedCost actual(subject, program, Objective::actual, {}),
        folded(subject, program, Objective::folded, {});
    for (const EliminationOrder& order : {reverse_order(program), markowitz_order(program)}) {
      const OrderCounts counts = count_order(subject, program, order);
      EXPECT_EQ(actual.of(order).cost, counts.actual_multiplications);
      EXPECT_EQ(folded.of(order).cost, counts.folded_multiplications + counts.folded_additions);
    }
  }
}

}  // namespace
}  // namespace loipe
