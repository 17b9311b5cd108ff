// SPDX-License-Identifier: Apache-2.0
#include "ir/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace loipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

const TensorType kVector{DType::f64, {3}};

TEST(Builder, EqualConstantsAreOneNode) {
  Builder b;
  EXPECT_EQ(b.scalar(0.5, DType::f64), b.scalar(0.5, DType::f64));
  EXPECT_EQ(b.scalar(std::nan(""), DType::f64), b.scalar(std::nan(""), DType::f64));
  EXPECT_NE(b.scalar(0.5, DType::f64), b.scalar(0.5, DType::f32));
  EXPECT_NE(b.scalar(0.0, DType::f64), b.scalar(-0.0, DType::f64));
  EXPECT_NE(b.constant(Tensor::of<double>({1}, {0.5})), b.scalar(0.5, DType::f64));
}

TEST(Builder, ContinuesAProgram) {
  Builder first("f");
  const Value half = first.scalar(0.5, DType::f64);
  const Value x = first.argument("x", kVector);
  Builder second(first.finish({x}));
  EXPECT_TRUE(second.program().outputs().empty());
  EXPECT_EQ(second.scalar(0.5, DType::f64), half);
  const Program program = second.finish({second.emit("mul", {x, half})});
  EXPECT_EQ(program.name(), "f");
  EXPECT_EQ(program.size(), 3u);
  EXPECT_EQ(second.program().size(), 0u);
}

TEST(Builder, NamesOpAndOperandsOfAMistake) {
  Builder b;
  const Value x = b.argument("x", kVector);
  EXPECT_THAT(
      [&] { b.emit("add", {x}); },
      ThrowsMessage<UserError>(AllOf(HasSubstr("add(f64[3])"), HasSubstr("expected 2 operands, got 1"))));
  const Value y = b.argument("y", {DType::f64, {4}});
  EXPECT_THAT([&] { b.emit("add", {x, y}); }, ThrowsMessage<UserError>(HasSubstr("add(f64[3], f64[4]): ")));
  EXPECT_THAT([&] { b.emit(constant_op(), {}); },
              ThrowsMessage<UserError>(HasSubstr("constant(): attribute 'value' is missing")));
  EXPECT_THAT([&] { b.emit("reshap", {x}); }, ThrowsMessage<UserError>(HasSubstr("did you mean 'reshape'?")));
}

TEST(Builder, RefusesTypesThatCannotBeAddressed) {
  Builder b;
  const Shape huge{std::int64_t{1} << 40, std::int64_t{1} << 40};
  EXPECT_THAT([&] { b.argument("x", {DType::f32, huge}); },
              ThrowsMessage<ResourceError>(HasSubstr("more elements")));
  EXPECT_THAT([&] { b.argument("x", {DType::f32, {-1}}); },
              ThrowsMessage<UserError>(HasSubstr("negative extent")));
}

TEST(Builder, RefusesValuesOfAnotherProgram) {
  Builder b;
  EXPECT_THAT([&] { b.emit("neg", {Value{7}}); }, ThrowsMessage<InternalError>(HasSubstr("another program")));
  EXPECT_THAT([&] { b.finish({Value{7}}); }, ThrowsMessage<InternalError>(HasSubstr("another program")));
}

}  // namespace
}  // namespace loipe
