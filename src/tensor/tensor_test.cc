// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <loipe/tensor.h>

#include <cmath>
#include <limits>

namespace loipe {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr DType kAllDTypes[] = {DType::f32, DType::f64, DType::boolean, DType::i32, DType::i64};

TEST(DTypes, NamesReadBack) {
  for (DType dtype : kAllDTypes) EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
  EXPECT_THAT([] { parse_dtype("f16"); }, ThrowsMessage<UserError>(HasSubstr("unknown dtype 'f16'")));
}

TEST(Shapes, CountTheirElements) {
  EXPECT_EQ(element_count(Shape{}), 1);
  EXPECT_EQ(element_count(Shape{2, 3}), 6);
  EXPECT_EQ(element_count(Shape{2, 0, 3}), 0);
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(to_string(TensorType{DType::f32, {4, 4}}), "f32[4,4]");
}

TEST(Shapes, RefuseNegativeAndHugeExtents) {
  EXPECT_THAT([] { element_count(Shape{2, -1}); }, ThrowsMessage<UserError>(HasSubstr("[2,-1]")));
  const Shape huge{std::int64_t{1} << 40, std::int64_t{1} << 40};
  EXPECT_THAT([&] { element_count(huge); }, ThrowsMessage<ResourceError>(HasSubstr("more elements")));
  EXPECT_THROW(Tensor(TensorType{DType::f64, huge}), ResourceError);
  // Strides of an empty tensor overflow like its elements would.
  EXPECT_THROW(element_count(Shape{0, std::int64_t{1} << 40, std::int64_t{1} << 40}), ResourceError);
  EXPECT_THROW(element_count(Shape{std::int64_t{1} << 40, std::int64_t{1} << 40, 0}), ResourceError);
}

TEST(Tensors, StartAtZeroAndAligned) {
  for (DType dtype : kAllDTypes) {
    const Tensor tensor(TensorType{dtype, {3, 5}});
    EXPECT_EQ(tensor.bytes().size(), 15 * size_of(dtype));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.bytes().data()) % 64, 0u);
    for (std::int64_t i = 0; i < 15; ++i) EXPECT_EQ(tensor.at(i), 0);
  }
}

TEST(Tensors, HoldTheGivenElements) {
  const Tensor tensor = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(tensor.elements<float>(), testing::ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(Tensor::scalar(2.5).at(0), 2.5);
  EXPECT_EQ(Tensor::of<bool>({2}, {true, false}).at(0), 1);
  EXPECT_EQ(Tensor::of<double>({0, 3}, {}).element_count(), 0);
}

TEST(Tensors, RefuseAWrongCountOrDType) {
  EXPECT_THAT([] { return Tensor::of<float>({3}, {1, 2}); },
              ThrowsMessage<UserError>(HasSubstr("wants 3 elements, got 2")));
  EXPECT_THAT([] { return Tensor::scalar(1.0).elements<float>(); },
              ThrowsMessage<UserError>(HasSubstr("dtype f64 read as f32")));
}

TEST(Tensors, CompareBitwise) {
  const double nan = std::nan("");
  EXPECT_EQ(Tensor::scalar(nan), Tensor::scalar(nan));
  EXPECT_FALSE(Tensor::scalar(0.0) == Tensor::scalar(-0.0));
  EXPECT_FALSE(Tensor::scalar(1.0) == Tensor::scalar(1.0f));
  EXPECT_FALSE(Tensor::of<double>({1}, {1}) == Tensor::scalar(1.0));
  EXPECT_EQ(Tensor(TensorType{DType::f32, {0}}), Tensor(TensorType{DType::f32, {0}}));
}

TEST(Conversions, TruncateSaturateAndTest) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor source = Tensor::of<double>({6}, {-1.9, 1e300, -inf, std::nan(""), 0.5, 0.0});
  const auto i32 = source.converted(DType::i32);
  EXPECT_THAT(i32.elements<std::int32_t>(),
              testing::ElementsAre(-1, std::numeric_limits<std::int32_t>::max(),
                                   std::numeric_limits<std::int32_t>::min(), 0, 0, 0));
  const auto boolean = source.converted(DType::boolean);
  EXPECT_THAT(boolean.elements<bool>(), testing::ElementsAre(true, true, true, true, true, false));
}

TEST(Conversions, ThereAndBackKeepsSmallIntegers) {
  const Tensor source = Tensor::of<std::int64_t>({2, 2}, {0, 1, 1, 0});
  for (DType dtype : kAllDTypes) EXPECT_EQ(source.converted(dtype).converted(DType::i64), source);
}

}  // namespace
}  // namespace loipe
