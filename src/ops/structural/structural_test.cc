// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/emit.h"
#include "ops/test_call.h"

namespace loipe::ops {
namespace {

using loipe::testing::call;
using loipe::testing::elements;
using loipe::testing::infer_error;
using loipe::testing::jacobian_by;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Iota, CountsAlongItsAxis) {
  const auto iota_of = [](std::int64_t axis) {
    return call("iota", {}, {{"dtype", DType::i32}, {"shape", Integers{2, 3}}, {"axis", axis}});
  };
  EXPECT_THAT(elements<std::int32_t>(iota_of(0)), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(elements<std::int32_t>(iota_of(1)), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(
      infer_error("iota", {}, {{"dtype", DType::i32}, {"shape", Integers{2}}, {"axis", std::int64_t{1}}}),
      HasSubstr("axis=1 is not an axis of shape [2]"));
  EXPECT_THAT(
      infer_error("iota", {}, {{"dtype", DType::boolean}, {"shape", Integers{2}}, {"axis", std::int64_t{0}}}),
      HasSubstr("dtype=bool cannot count"));
}

TEST(Convert, TruncatesToIntegersAndTestsForZero) {
  const Tensor x = Tensor::of<double>({3}, {-1.7, 0, 2.9});
  EXPECT_THAT(elements<std::int64_t>(call("convert_element_type", {x}, {{"dtype", DType::i64}})),
              ElementsAre(-1, 0, 2));
  EXPECT_THAT(elements<bool>(call("convert_element_type", {x}, {{"dtype", DType::boolean}})),
              ElementsAre(true, false, true));
}

TEST(Convert, IsAUnitBetweenFloatingDtypesAndACutElsewhere) {
  Builder b;
  const Value x = b.argument("x", {DType::f64, {3}});
  EXPECT_TRUE(jacobian_by(b, convert(b, x, DType::f32), 0).terms.at(0).is_unit());
  EXPECT_TRUE(jacobian_by(b, convert(b, x, DType::i32), 0).is_zero());
}

TEST(Argument, IsNotComputed) {
  EXPECT_THAT(infer_error("argument", {}), HasSubstr("an argument is declared with the program"));
}

TEST(Constant, HasTheTypeOfItsValue) {
  const Tensor value = Tensor::of<float>({2}, {1, 2});
  EXPECT_EQ(call("constant", {}, {{"value", std::make_shared<const Tensor>(value)}}), value);
}

}  // namespace
}  // namespace loipe::ops
