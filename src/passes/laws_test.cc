// SPDX-License-Identifier: Apache-2.0
// What every pass promises, on random programs: it keeps the meaning, is idempotent,
// verifies, and costs nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>

#include "ir/interpreter.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "passes/dead_code/dead_code.h"
#include "passes/random_program.h"
#include "passes/runner.h"

namespace loipe {

/// How test names show the parameter.
void PrintTo(const Pass& pass, std::ostream* stream) { *stream << pass.name; }

namespace {

constexpr std::uint64_t kSeeds = 1000;

/// Sums that start at +0 lose a lone -0, and the larger of two zeros depends on the
/// order: programs without such ops keep all bits (NaN is NaN).
const RandomProgramOptions kBitwise{{"einsum", "scatter", "reduce_sum", "max", "min"}, true};
/// With them, programs without ops that tell +0 from -0 keep all numbers.
const RandomProgramOptions kNumbers{{"div", "rsqrt", "integer_pow", "pow", "atan2"}, false};

bool is_same(double x, double y, bool is_bitwise) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  return x == y && (!is_bitwise || std::signbit(x) == std::signbit(y));
}

void expect_same_values(const Program& before, const Program& after, std::span<const Tensor> arguments,
                        bool is_bitwise) {
  const std::vector<Tensor> expected = evaluate(before, arguments), values = evaluate(after, arguments);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t k = 0; k < values.size(); ++k) {
    ASSERT_EQ(values[k].type(), expected[k].type()) << "output " << k;
    for (std::int64_t i = 0; i < values[k].element_count(); ++i)
      ASSERT_TRUE(is_same(values[k].at(i), expected[k].at(i), is_bitwise))
          << "output " << k << " at " << i << ": " << expected[k].at(i) << " became " << values[k].at(i);
  }
}

/// Of the nodes that outputs need. (An empty einsum claims a negative cost.)
OpCost cost_of(const Program& program) {
  const Program live = passes::dead_code(program);
  OpCost total;
  for (std::uint32_t i = 0; i < live.size(); ++i) {
    std::vector<const TensorType*> operands;
    for (Value operand : live.operands(Value{i})) operands.push_back(&live.type(operand));
    OpCost cost = live.op(Value{i}).cost.value({operands, live.attributes(Value{i}), live.type(Value{i})});
    cost.multiplications = std::max<std::int64_t>(cost.multiplications, 0);
    cost.additions = std::max<std::int64_t>(cost.additions, 0);
    total += cost;
  }
  return total;
}

/// Sharing reciprocals adds the reciprocals, which are among the divisions left.
void expect_no_more_cost(const Pass& pass, const Program& before, const Program& after) {
  const OpCost old = cost_of(before), now = cost_of(after);
  EXPECT_LE(now.divisions, old.divisions);
  EXPECT_LE(now.functions, old.functions);
  EXPECT_LE(now.total(), old.total() + (pass.name == "reciprocals" ? now.divisions : 0));
}

void expect_same_interface(const Program& before, const Program& after) {
  ASSERT_EQ(after.arguments().size(), before.arguments().size());
  for (std::size_t i = 0; i < before.arguments().size(); ++i) {
    EXPECT_EQ(after.argument_name(i), before.argument_name(i));
    EXPECT_EQ(after.type(after.arguments()[i]), before.type(before.arguments()[i]));
  }
  EXPECT_EQ(after.name(), before.name());
}

/// The others round differently; what they keep is tested apart.
bool keeps_rounding(const Pass& pass) {
  return pass.name != "reciprocals" && pass.name != "reassociation" && pass.name != "expansion";
}

void expect_laws(const Pass& pass, const RandomProgram& random, bool is_bitwise) {
  const Program after = pass.run(random.program);
  verify(after);
  expect_same_interface(random.program, after);
  expect_no_more_cost(pass, random.program, after);
  EXPECT_EQ(program_to_text(pass.run(after)), program_to_text(after)) << "not idempotent";
  if (keeps_rounding(pass)) expect_same_values(random.program, after, random.arguments, is_bitwise);
}

class PassLaws : public testing::TestWithParam<Pass> {};

TEST_P(PassLaws, HoldOnRandomPrograms) {
  for (std::uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed)
    for (const RandomProgramOptions& options : {kBitwise, kNumbers}) {
      const RandomProgram random(seed, options);
      SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + program_to_text(random.program) + "became\n" +
                   program_to_text(GetParam().run(random.program)));
      expect_laws(GetParam(), random, options.special_values);
    }
}

INSTANTIATE_TEST_SUITE_P(All, PassLaws, testing::ValuesIn(all_passes().begin(), all_passes().end()),
                         [](const auto& test) { return std::string(test.param.name); });

/// The passes in any order, some of them missing, some twice.
TEST(PassListLaws, HoldForAnyListOfPasses) {
  PassOptions options;
  options.verify_each = true;
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    const RandomProgram random(seed, kBitwise);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + program_to_text(random.program));
    Rng rng(seed);
    std::vector<Pass> list;
    while (list.size() < 6) {
      const Pass& pass = all_passes()[static_cast<std::size_t>(rng.below(std::ssize(all_passes())))];
      if (keeps_rounding(pass)) list.push_back(pass);
    }
    expect_same_values(random.program, run_passes(random.program, list, options), random.arguments, true);
  }
}

/// Sums, quotients and geometric means of positive numbers, where no digits cancel:
/// each reciprocal costs at most an ulp, so all of them a few.
TEST(PassListLaws, ReciprocalsKeepDigits) {
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    Rng rng(seed);
    Builder b;
    std::vector<Value> values;
    std::vector<Tensor> arguments;
    for (const Shape& shape : {Shape{}, Shape{1, 3}, Shape{2, 1}, Shape{2, 3}}) {
      arguments.emplace_back(TensorType{DType::f64, shape});
      for (double& x : arguments.back().elements<double>()) x = rng.uniform(0.5, 2);
      values.push_back(b.argument("x" + std::to_string(values.size()), arguments.back().type()));
    }
    const auto pick = [&] { return values[static_cast<std::size_t>(rng.below(std::ssize(values)))]; };
    while (values.size() < 30) {
      const Value x = pick(), y = pick();
      if (rng.chance(0.6)) values.push_back(b.emit("div", {x, y}));
      else if (rng.chance(0.2) && b.shape(x).size() == 2)
        values.push_back(
            b.emit("broadcast_in_dim", {x}, {{"shape", Shape{2, 3}}, {"dimensions", Integers{0, 1}}}));
      else if (rng.chance(0.5)) values.push_back(b.emit("add", {x, y}));
      else values.push_back(b.emit("sqrt", {b.emit("mul", {x, y})}));
    }
    const Program program = b.finish({values.end() - 6, values.end()});
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + program_to_text(program));
    const std::vector<Tensor> before = evaluate(program, arguments);
    const std::vector<Tensor> after = evaluate(run_passes(program), arguments);
    for (std::size_t k = 0; k < before.size(); ++k)
      for (std::int64_t i = 0; i < before[k].element_count(); ++i)
        EXPECT_NEAR(after[k].at(i) / before[k].at(i), 1, 1e-13);
  }
}

}  // namespace
}  // namespace loipe
