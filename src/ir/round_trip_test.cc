// SPDX-License-Identifier: Apache-2.0
// Print, parse, print is a fixed point, and the parsed program is the same program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/file.h"
#include "base/rng.h"
#include "ir/builder.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"

namespace loipe {
namespace {

void expect_same(const Program& a, const Program& b) {
  EXPECT_EQ(a.name(), b.name());
  ASSERT_EQ(a.size(), b.size());
  EXPECT_TRUE(std::ranges::equal(a.arguments(), b.arguments()));
  EXPECT_TRUE(std::ranges::equal(a.outputs(), b.outputs()));
  for (std::size_t i = 0; i < a.arguments().size(); ++i) EXPECT_EQ(a.argument_name(i), b.argument_name(i));
  for (std::uint32_t i = 0; i < a.size(); ++i) {
    const Value v{i};
    EXPECT_EQ(&a.op(v), &b.op(v));
    EXPECT_EQ(a.type(v), b.type(v));
    EXPECT_TRUE(std::ranges::equal(a.operands(v), b.operands(v)));
    EXPECT_EQ(a.attributes(v).print(), b.attributes(v).print());
  }
}

void expect_round_trip(const Program& program) {
  const std::string text = program_to_text(program);
  SCOPED_TRACE(text);
  const Program parsed = program_from_text(text);
  EXPECT_EQ(program_to_text(parsed), text);
  expect_same(program, parsed);
}

template <class List>
const auto& pick(Rng& rng, const List& list) {
  return list[static_cast<std::size_t>(rng.below(static_cast<std::int64_t>(std::size(list))))];
}

/// Samples of all ops with their attributes, elementwise chains, constants of
/// every dtype (also equal ones, inf and nan) anywhere between, odd names, values
/// without use. Made to be printed, not to be differentiated.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : rng_(seed), builder_(pick(rng_, kProgramNames)) {}

  Program make() {
    for (const char* name : kArgumentNames)
      if (rng_.chance(0.7)) values_.push_back(builder_.argument(name, {DType::f64, {3}}));
    values_.push_back(builder_.argument("last", {DType::f64, {}}));
    for (std::int64_t steps = rng_.between(1, 25); steps > 0; --steps) {
      if (rng_.chance(0.3)) add_constant(random_tensor());
      else if (rng_.chance(0.5)) add_sample();
      else add_elementwise();
    }
    std::vector<Value> outputs;
    for (std::int64_t n = rng_.below(4); n > 0; --n) outputs.push_back(pick(rng_, values_));
    return builder_.finish(outputs);
  }

 private:
  static constexpr const char* kProgramNames[] = {"main", "", "two words", "return", "7"};
  static constexpr const char* kArgumentNames[] = {"x",   "weight.0", "c1", "1",           "a b",
                                                   "c0x", "løype",    "",   "q\"\\\n\x01", "program"};

  Value add_constant(Tensor tensor) {
    // emit() instead of constant(), so that equal constants stay two nodes.
    return builder_.emit(constant_op(), {}, {{"value", std::make_shared<const Tensor>(std::move(tensor))}});
  }

  Tensor random_tensor() {
    constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::boolean, DType::i32, DType::i64};
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr double kSpecial[] = {
        0.0, -0.0, kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(), 5e-324};
    Shape shape;
    for (std::int64_t rank = rng_.below(4); rank > 0; --rank) shape.push_back(rng_.below(4));
    Tensor tensor(TensorType{pick(rng_, kDTypes), shape});
    for (std::int64_t i = 0; i < tensor.element_count(); ++i)
      tensor.set(i, rng_.chance(0.2) ? pick(rng_, kSpecial) : rng_.uniform(-1e3, 1e3));
    return tensor;
  }

  void add_sample() {
    const OpDef& op = *pick(rng_, all_ops());
    if (&op == &argument_op() || &op == &constant_op()) return;
    const std::vector<Sample> samples = op.samples.value(rng_);
    if (samples.empty()) return;
    const Sample& sample = pick(rng_, samples);
    std::vector<Value> operands;
    for (const Tensor& operand : sample.operands) operands.push_back(add_constant(operand));
    builder_.emit(op, operands, sample.attributes);
  }

  void add_elementwise() {
    constexpr const char* kUnary[] = {"neg", "tanh"};
    constexpr const char* kBinary[] = {"add", "mul", "sub"};
    if (rng_.chance(0.4)) values_.push_back(builder_.emit(pick(rng_, kUnary), {pick(rng_, values_)}));
    else values_.push_back(builder_.emit(pick(rng_, kBinary), {pick(rng_, values_), pick(rng_, values_)}));
  }

  Rng rng_;
  Builder builder_;
  std::vector<Value> values_;
};

TEST(RoundTrip, RandomPrograms) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Program program = RandomProgram(seed).make();
    verify(program);
    expect_round_trip(program);
  }
}

TEST(RoundTrip, EverySampleOfEveryOp) {
  Rng rng(1);
  for (const OpDef* op : all_ops()) {
    if (op == &argument_op()) continue;
    SCOPED_TRACE(op->name.value);
    for (const Sample& sample : op->samples.value(rng)) {
      Builder b(std::string(op->name.value));
      std::vector<Value> operands;
      for (std::size_t i = 0; i < sample.operands.size(); ++i)
        operands.push_back(b.argument("x" + std::to_string(i), sample.operands[i].type()));
      const Value result = b.emit(*op, operands, sample.attributes);
      expect_round_trip(b.finish({result}));
    }
  }
}

TEST(RoundTrip, PrintsTheDocumentedForm) {
  Builder b("Example");
  const Value x = b.argument("x", {DType::f32, {2}});
  const Value y = b.argument("two words", {DType::f32, {2}});
  const Value product = b.emit("mul", {x, b.scalar(0.5, DType::f32)});
  const Value sum = b.emit("add", {product, y});
  const Program program = b.finish({sum, x});
  EXPECT_EQ(program_to_text(program), R"(program Example(%x: f32[2], %"two words": f32[2]) {
  %c1 = constant {value=f32[](0.5)} : f32[]
  %1 = mul(%x, %c1) : f32[2]
  %2 = add(%1, %"two words") : f32[2]
  return %2, %x
}
)");
  expect_round_trip(program);
}

TEST(RoundTrip, ReadsTheExampleOfTheDocumentation) {
  const std::string page = read_text_file(LOIPE_SOURCE_DIR "/docs/ir_text.md");
  const std::size_t begin = page.find("program ", page.find("```"));
  const Program program = program_from_text(page.substr(begin, page.find("```", begin) - begin));
  EXPECT_EQ(program.name(), "Encoder");
  EXPECT_EQ(program.size(), 5u);
  expect_round_trip(program);
}

TEST(RoundTrip, ManyArgumentsStandOnTheirOwnLines) {
  Builder b("wide");
  for (int i = 0; i < 20; ++i) b.argument("argument_" + std::to_string(i), {DType::f64, {i}});
  const Program program = b.finish({});
  EXPECT_THAT(program_to_text(program),
              testing::HasSubstr("(\n    %argument_0: f64[0],\n    %argument_1: f64[1],\n"));
  expect_round_trip(program);
}

TEST(RoundTrip, LargeConstantIsExact) {
  Rng rng(2);
  Tensor f32(TensorType{DType::f32, {100, 200}});
  Tensor f64(TensorType{DType::f64, {20'000}});
  for (float& element : f32.elements<float>()) element = static_cast<float>(rng.normal());
  for (double& element : f64.elements<double>())
    element = rng.normal() * std::pow(10.0, rng.uniform(-300, 300));
  Builder b;
  const Value first = b.constant(f32);
  const Value second = b.constant(f64);
  const std::string text = program_to_text(b.finish({first, second}));
  const Program parsed = program_from_text(text);
  EXPECT_EQ(parsed.attributes(first).tensor("value"), f32);
  EXPECT_EQ(parsed.attributes(second).tensor("value"), f64);
  EXPECT_EQ(program_to_text(parsed), text);
}

TEST(RoundTrip, ManyNodes) {
  Builder b;
  const Value x = b.argument("x", {DType::f64, {}});
  Value last = x;
  for (int i = 0; i < 100'000; ++i) last = b.emit("mul", {last, i % 3 == 0 ? b.scalar(i, DType::f64) : x});
  const Program program = b.finish({last});
  const std::string text = program_to_text(program);
  EXPECT_EQ(program_to_text(program_from_text(text)), text);
}

}  // namespace
}  // namespace loipe
