// SPDX-License-Identifier: Apache-2.0
#include "passes/reassociation/reassociation.h"

#include <cmath>
#include <limits>

#include "accumulation/accumulate.h"
#include "base/rng.h"
#include "ir/builder.h"
#include "ir/interpreter.h"
#include "passes/pass_testing.h"

namespace loipe::passes {
namespace {

const std::string kArguments = "%A: f64[8,8], %B: f64[8,8], %v: f64[8], %w: f64[8], %s: f64[]";

std::int64_t multiplications(const Program& program) { return count_operations(program).multiplications; }

/// The same values, computed with this many multiplications.
void expect_multiplications(const std::string& body, std::int64_t before, std::int64_t after) {
  const Program program = program_from_text(program_text(kArguments, body));
  const Program result = reassociation(program);
  SCOPED_TRACE(program_to_text(program) + "became\n" + program_to_text(result));
  verify(result);
  EXPECT_EQ(multiplications(dead_code(program)), before);
  EXPECT_EQ(multiplications(dead_code(result)), after);
  EXPECT_EQ(program_to_text(reassociation(result)), program_to_text(result));
  Rng rng(7);
  std::vector<Tensor> arguments;
  for (Value argument : program.arguments()) {
    arguments.emplace_back(program.type(argument));
    for (double& x : arguments.back().elements<double>()) x = static_cast<double>(rng.between(-3, 3));
  }
  const std::vector<Tensor> expected = evaluate(program, arguments), values = evaluate(result, arguments);
  for (std::size_t k = 0; k < expected.size(); ++k)
    for (std::int64_t i = 0; i < expected[k].element_count(); ++i)
      ASSERT_EQ(values[k].at(i), expected[k].at(i));
}

TEST(Reassociation, MatrixTimesMatrixTimesVector) {
  expect_multiplications(
      "  %1 = einsum(%A, %B) {spec=\"ab,bc->ac\"}\n  %2 = einsum(%1, %v) {spec=\"ab,b->a\"}\n  return %2\n",
      512 + 64, 64 + 64);
}

TEST(Reassociation, RowTimesMatrices) {
  expect_multiplications(
      "  %1 = einsum(%A, %B) {spec=\"ab,bc->ac\"}\n  %2 = einsum(%v, %1) {spec=\"a,ab->b\"}\n"
      "  %3 = einsum(%2, %w) {spec=\"a,a->\"}\n  return %3\n",
      512 + 64 + 8, 64 + 64 + 8);
}

TEST(Reassociation, OuterProductsComeLast) {
  expect_multiplications(
      "  %1 = einsum(%v, %A) {spec=\"a,bc->abc\"}\n  %2 = einsum(%B, %1) {spec=\"da,abc->dbc\"}\n  return "
      "%2\n",
      512 + 4096, 64 + 512);
}

TEST(Reassociation, ScalarsGoToTheSmallerOperand) {
  expect_multiplications("  %1 = mul(%A, %s)\n  %2 = einsum(%1, %v) {spec=\"ab,b->a\"}\n  return %2\n",
                         64 + 64, 8 + 64);
  expect_multiplications(
      "  %1 = reshape(%v) {shape=[8,1]}\n  %2 = mul(%A, %1)\n  %3 = mul(%2, %s)\n  return %3\n", 128, 72);
}

TEST(Reassociation, DiagonalFactors) {
  // diag(v) A diag(w) x, where x is v again.
  expect_multiplications(
      "  %1 = reshape(%v) {shape=[8,1]}\n  %2 = mul(%A, %1)\n  %3 = reshape(%w) {shape=[1,8]}\n"
      "  %4 = mul(%2, %3)\n  %5 = einsum(%4, %v) {spec=\"ab,b->a\"}\n  return %5\n",
      64 + 64 + 64, 8 + 64 + 8);
}

TEST(Reassociation, OneSidedSumsComeFirst) {
  expect_multiplications("  %1 = einsum(%A, %B) {spec=\"ab,bc->c\"}\n  return %1\n", 512, 64);
}

TEST(Reassociation, LooksThroughLayouts) {
  expect_multiplications(
      "  %1 = einsum(%A, %B) {spec=\"ab,bc->ac\"}\n  %2 = transpose(%1) {permutation=[1,0]}\n"
      "  %3 = reshape(%2) {shape=[8,1,8]}\n  %4 = einsum(%3, %v) {spec=\"axb,b->xa\"}\n  return %4\n",
      512 + 64, 64 + 64);
  expect_multiplications(
      "  %1 = broadcast_in_dim(%v) {shape=[8,8],dimensions=[0]}\n"
      "  %2 = broadcast_in_dim(%w) {shape=[8,8],dimensions=[0]}\n  %3 = mul(%1, %2)\n  return %3\n",
      64, 8);
}

TEST(Reassociation, SharedProductsAreComputedAnewOnlyWhereThatIsCheaper) {
  const std::string product = "  %1 = einsum(%A, %B) {spec=\"ab,bc->ac\"}\n";
  expect_multiplications(product + "  %2 = einsum(%1, %v) {spec=\"ab,b->a\"}\n  return %1, %2\n", 512 + 64,
                         512 + 64);
  const std::string outer = "  %1 = einsum(%v, %A) {spec=\"a,bc->abc\"}\n";
  expect_multiplications(outer + "  %2 = einsum(%B, %1) {spec=\"da,abc->dbc\"}\n  return %1, %2\n",
                         512 + 4096, 512 + 64 + 512);
}

TEST(Reassociation, NothingToGain) {
  expect_unchanged(reassociation, kArguments,
                   "  %1 = einsum(%B, %v) {spec=\"ab,b->a\"}\n  %2 = einsum(%A, %1) {spec=\"ab,b->a\"}\n"
                   "  %3 = mul(%s, %s)\n  %4 = mul(%3, %s)\n  return %2, %4\n");
  // Sums and other ops stand between.
  expect_unchanged(reassociation, kArguments,
                   "  %1 = einsum(%A, %B) {spec=\"ab,bc->ac\"}\n  %2 = add(%1, %A)\n"
                   "  %3 = einsum(%2, %v) {spec=\"ab,b->a\"}\n  return %3\n");
}

TEST(Reassociation, MaskedProductsStay) {
  const std::string masked = "  %1 = einsum(%A, %B, %p) {spec=\"ab,bc,ab->ac\"}\n";
  expect_unchanged(reassociation, "%A: f64[8,8], %B: f64[8,8], %v: f64[8], %p: bool[8,8]",
                   masked + "  %2 = einsum(%1, %v) {spec=\"ab,b->a\"}\n  return %2\n");
  expect_unchanged(reassociation, "%A: f64[8,8], %B: f64[8,8], %v: f64[8], %p: bool[8,8]",
                   "  %1 = einsum(%A, %B) {spec=\"ab,bc->ac\"}\n"
                   "  %2 = einsum(%1, %v, %p) {spec=\"ab,b,ab->a\"}\n  return %2\n");
}

/// Infinities behind a mask stay there.
TEST(Reassociation, KeepsWhatMasksHide) {
  const Program program = program_from_text(program_text(
      "%A: f64[8,8], %B: f64[8,8], %v: f64[8], %p: bool[8,8]",
      "  %1 = einsum(%A, %B, %p) {spec=\"ab,bc,ab->ac\"}\n  %2 = einsum(%1, %A) {spec=\"ab,bc->ac\"}\n"
      "  %3 = einsum(%2, %v) {spec=\"ab,b->a\"}\n  return %3\n"));
  std::vector<Tensor> arguments;
  for (Value argument : program.arguments()) {
    arguments.emplace_back(program.type(argument));
    for (std::int64_t i = 0; i < arguments.back().element_count(); ++i) arguments.back().set(i, 1);
  }
  arguments[1].set(0, std::numeric_limits<double>::infinity());
  for (std::int64_t row = 0; row < 8; ++row) arguments[3].set(8 * row, 0);
  const Program result = reassociation(program);
  EXPECT_LT(multiplications(result), multiplications(program));
  const std::vector<Tensor> values = evaluate(result, arguments);
  for (double x : values[0].elements<double>()) EXPECT_EQ(x, 7.0 * 8 * 8);
}

/// Random products of random products, of integers, whose sums and products are exact.
class RandomProducts {
 public:
  explicit RandomProducts(std::uint64_t seed) : rng_(seed), builder_("products") {
    for (const Shape& shape :
         {Shape{}, Shape{2}, Shape{3}, Shape{2, 3}, Shape{3, 2}, Shape{1, 3}, Shape{4, 1, 2}}) {
      arguments.emplace_back(TensorType{DType::f64, shape});
      for (double& x : arguments.back().elements<double>()) x = static_cast<double>(rng_.between(-1, 1));
      values_.push_back(builder_.argument("x" + std::to_string(values_.size()), arguments.back().type()));
    }
    for (std::int64_t steps = rng_.between(2, 14); steps > 0; --steps) add();
    std::vector<Value> outputs{values_.back()};
    if (rng_.chance(0.5)) outputs.push_back(pick());
    program = builder_.finish(outputs);
  }

  Program program;
  std::vector<Tensor> arguments;

 private:
  Value pick() {
    // Late values are likelier, so that products of products come up.
    const auto count = std::ssize(values_);
    const std::int64_t first = rng_.chance(0.6) ? std::max<std::int64_t>(count - 4, 0) : 0;
    return values_[static_cast<std::size_t>(rng_.between(first, count - 1))];
  }

  void add() {
    const Value x = pick();
    const Shape& shape = builder_.shape(x);
    if (rng_.chance(0.65)) return add_einsum(x, pick());
    Integers axes(shape.size());
    for (std::size_t axis = 0; axis < axes.size(); ++axis) axes[axis] = static_cast<std::int64_t>(axis);
    switch (rng_.below(5)) {
      case 0:
        values_.push_back(
            builder_.emit("transpose", {x}, {{"permutation", Integers(axes.rbegin(), axes.rend())}}));
        break;
      case 1: {
        Shape longer = shape;
        longer.insert(longer.begin(), 1);
        values_.push_back(builder_.emit("reshape", {x}, {{"shape", longer}}));
        break;
      }
      case 2: {
        Shape longer = shape;
        longer.push_back(2);
        if (shape.size() < 4)
          values_.push_back(
              builder_.emit("broadcast_in_dim", {x}, {{"shape", longer}, {"dimensions", axes}}));
        break;
      }
      case 3:
        if (!shape.empty())
          values_.push_back(builder_.emit("reduce_sum", {x}, {{"axes", Integers{axes.back()}}}));
        break;
      default: values_.push_back(builder_.emit("mul", {x, values_[0]}));
    }
  }

  /// Labels by extent, so that all fit: a letter of the extent, or another one.
  void add_einsum(Value x, Value y) {
    std::string all;
    const auto labels = [&](Value operand) {
      std::string text;
      for (std::int64_t extent : builder_.shape(operand)) {
        text += static_cast<char>('a' + 4 * extent + rng_.below(3));
        if (all.find(text.back()) == std::string::npos) all += text.back();
      }
      return text;
    };
    const std::string first = labels(x), spec = first + "," + labels(y);
    std::string result;
    for (char letter : all)
      if (result.size() < 4 && rng_.chance(0.6)) result += letter;
    values_.push_back(builder_.emit("einsum", {x, y}, {{"spec", spec + "->" + result}}));
  }

  Rng rng_;
  Builder builder_;
  std::vector<Value> values_;
};

TEST(Reassociation, IsExactOnIntegers) {
  std::size_t changed = 0;
  for (std::uint64_t seed = 1; seed <= 3000 && !testing::Test::HasFailure(); ++seed) {
    const RandomProducts random(seed);
    const Program after = reassociation(random.program);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + program_to_text(random.program) + "became\n" +
                 program_to_text(after));
    verify(after);
    const OpCost old = count_operations(dead_code(random.program)), now = count_operations(dead_code(after));
    EXPECT_LE(now.multiplications, old.multiplications);
    EXPECT_LE(now.total(), old.total());
    EXPECT_EQ(program_to_text(reassociation(after)), program_to_text(after)) << "not idempotent";
    changed += program_to_text(after) != program_to_text(random.program);
    const std::vector<Tensor> expected = evaluate(random.program, random.arguments);
    const std::vector<Tensor> values = evaluate(after, random.arguments);
    for (std::size_t k = 0; k < expected.size(); ++k) {
      ASSERT_EQ(values[k].type(), expected[k].type());
      for (std::int64_t i = 0; i < expected[k].element_count(); ++i) {
        if (std::abs(expected[k].at(i)) > 1e15) continue;  // no longer exact
        ASSERT_EQ(values[k].at(i), expected[k].at(i));
      }
    }
  }
  EXPECT_GT(changed, 500U);
}

}  // namespace
}  // namespace loipe::passes
