// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const Tensor kMatrix = Tensor::of<double>({2, 3}, {1, 5, 3, 4, 2, 6});

TEST(Reduce, DropsTheAxes) {
  EXPECT_THAT(elements<double>(call("reduce_sum", {kMatrix}, {{"axes", Integers{0}}})), ElementsAre(5, 7, 9));
  EXPECT_THAT(elements<double>(call("reduce_sum", {kMatrix}, {{"axes", Integers{1}}})), ElementsAre(9, 12));
  EXPECT_THAT(elements<double>(call("reduce_max", {kMatrix}, {{"axes", Integers{1}}})), ElementsAre(5, 6));
  EXPECT_THAT(elements<double>(call("reduce_min", {kMatrix}, {{"axes", Integers{1}}})), ElementsAre(1, 2));
  EXPECT_EQ(call("reduce_sum", {kMatrix}, {{"axes", Integers{1, 0}}}).shape(), Shape{});
  EXPECT_EQ(call("reduce_sum", {kMatrix}, {{"axes", Integers{}}}), kMatrix);
}

TEST(Reduce, OfNothingIsTheIdentity) {
  const Tensor empty(TensorType{DType::f64, {2, 0}});
  const Attributes axes{{"axes", Integers{1}}};
  EXPECT_THAT(elements<double>(call("reduce_sum", {empty}, axes)), ElementsAre(0, 0));
  EXPECT_THAT(elements<double>(call("reduce_max", {empty}, axes)), ElementsAre(-kInfinity, -kInfinity));
  EXPECT_THAT(elements<double>(call("reduce_min", {empty}, axes)), ElementsAre(kInfinity, kInfinity));
  const Tensor no_integers(TensorType{DType::i32, {0}});
  EXPECT_THAT(elements<std::int32_t>(call("reduce_max", {no_integers}, {{"axes", Integers{0}}})),
              ElementsAre(std::numeric_limits<std::int32_t>::min()));
}

TEST(Reduce, NanPropagates) {
  const Tensor x = Tensor::of<double>({3}, {1, std::nan(""), 2});
  for (const char* op : {"reduce_sum", "reduce_max", "reduce_min"})
    EXPECT_TRUE(std::isnan(call(op, {x}, {{"axes", Integers{0}}}).at(0))) << op;
}

TEST(Reduce, Errors) {
  EXPECT_THAT(infer_error("reduce_sum", {{DType::f64, {2, 3}}}, {{"axes", Integers{2}}}),
              HasSubstr("reduce_sum(f64[2,3]): axes=[2] names axis 2, but the operand has rank 2"));
  EXPECT_THAT(infer_error("reduce_max", {{DType::f64, {2, 3}}}, {{"axes", Integers{1, 1}}}),
              HasSubstr("axes=[1,1] names axis 1 twice"));
  EXPECT_THAT(infer_error("reduce_max", {{DType::boolean, {2}}}, {{"axes", Integers{0}}}),
              HasSubstr("operand has dtype bool"));
  EXPECT_THAT(infer_error("reduce_sum", {{DType::f64, {2}}}), HasSubstr("attribute 'axes' is missing"));
}

TEST(ReduceJacobian, SumIsAUnitAndMaxIsOneNumberPerResult) {
  Builder b;
  const Value x = b.argument("x", {DType::f64, {2, 3}});
  EXPECT_EQ(to_string(jacobian_by(b, reduce_sum(b, x, {1}), 0).terms.at(0)), "(a | a, b) a<2, b<3 : 1.0");
  const LocalJacobian largest = jacobian_by(b, reduce_max(b, x, {1}), 0);
  EXPECT_EQ(b.shape(largest.terms.at(0).value->value), (Shape{2}));
  EXPECT_EQ(b.shape(largest.terms.at(0).mask->value), (Shape{2, 3}));
}

}  // namespace
}  // namespace loipe::ops
