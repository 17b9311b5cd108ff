// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/emit.h"
#include "ops/op_list.h"
#include "ops/test_call.h"

namespace loipe::ops {
namespace {

using loipe::testing::call;
using loipe::testing::elements;
using loipe::testing::infer_error;
using loipe::testing::jacobian_by;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Attributes axes(Integers lhs_contract, Integers rhs_contract, Integers lhs_batch = {},
                Integers rhs_batch = {}) {
  return {{"lhs_contract", std::move(lhs_contract)},
          {"rhs_contract", std::move(rhs_contract)},
          {"lhs_batch", std::move(lhs_batch)},
          {"rhs_batch", std::move(rhs_batch)}};
}

const Tensor kLeft = Tensor::of<double>({2, 3}, {1, 2, 3, 4, 5, 6});
const Tensor kRight = Tensor::of<double>({3, 2}, {1, 0, 0, 1, 1, 1});

TEST(DotGeneral, MatrixProduct) {
  EXPECT_THAT(elements<double>(call("dot_general", {kLeft, kRight}, axes({1}, {0}))),
              ElementsAre(4, 5, 10, 11));
}

TEST(DotGeneral, MissingAxesAreNone) {
  const Tensor outer =
      call("dot_general", {Tensor::of<double>({2}, {1, 2}), Tensor::of<double>({2}, {3, 4})});
  EXPECT_EQ(outer.shape(), (Shape{2, 2}));
  EXPECT_THAT(elements<double>(outer), ElementsAre(3, 4, 6, 8));
}

TEST(DotGeneral, BatchAxesComeFirst) {
  const Tensor result = call("dot_general", {kLeft, kRight}, axes({0}, {1}, {1}, {0}));
  EXPECT_EQ(result.shape(), (Shape{3}));
  EXPECT_THAT(elements<double>(result), ElementsAre(1, 5, 9));
}

TEST(DotGeneral, AnEmptySumIsZero) {
  const Tensor left(TensorType{DType::f64, {2, 0}}), right(TensorType{DType::f64, {0, 1}});
  EXPECT_THAT(elements<double>(call("dot_general", {left, right}, axes({1}, {0}))), ElementsAre(0, 0));
}

TEST(DotGeneral, Errors) {
  const TensorType left{DType::f64, {2, 3}}, right{DType::f64, {4, 2}};
  EXPECT_THAT(
      infer_error("dot_general", {left, right}, axes({1}, {0})),
      HasSubstr(
          "axis 1 of lhs has extent 3, but its partner in rhs_contract=[0], axis 0 of rhs, has extent 4"));
  EXPECT_THAT(infer_error("dot_general", {left, right}, axes({0, 1}, {1})),
              HasSubstr("lhs_contract=[0,1] and rhs_contract=[1] must name equally many axes"));
  EXPECT_THAT(infer_error("dot_general", {left, right}, axes({0}, {1}, {0}, {1})),
              HasSubstr("axis 0 of lhs is both in lhs_batch=[0] and in lhs_contract=[0]"));
  EXPECT_THAT(infer_error("dot_general", {left, right}, axes({2}, {1})),
              HasSubstr("lhs_contract=[2] names axis 2, but the operand has rank 2"));
  EXPECT_THAT(infer_error("dot_general", {left, {DType::f32, {3, 2}}}, axes({1}, {0})),
              HasSubstr("operands have dtypes f64 and f32"));
}

TEST(DotGeneral, CostOfAMatrixProduct) {
  const TensorType left{DType::f64, {2, 3}}, right{DType::f64, {3, 4}}, out{DType::f64, {2, 4}};
  const TensorType* operands[] = {&left, &right};
  const OpCost cost = op_dot_general.cost.value({operands, axes({1}, {0}), out});
  EXPECT_EQ(cost.multiplications, 24);
  EXPECT_EQ(cost.additions, 16);
}

TEST(DotGeneralJacobian, IsTheOtherOperand) {
  Builder b;
  const Value left = b.argument("left", {DType::f64, {2, 3}}),
              right = b.argument("right", {DType::f64, {3, 4}});
  const Value product = dot_general(b, left, right, {1}, {0});
  const Term by_right = jacobian_by(b, product, 1).terms.at(0);
  EXPECT_EQ(by_right.value->value, left);
  EXPECT_EQ(by_right.out[1], by_right.in[1]) << "the columns of result and right operand agree";
  EXPECT_EQ(jacobian_by(b, product, 0).terms.at(0).value->value, right);
}

TEST(DotGeneralJacobian, OfAProductWithEqualNumbersIsACoefficient) {
  Builder b;
  const Value x = b.argument("x", {DType::f64, {2, 3}});
  const Value product = dot_general(b, x, full(b, {3, 4}, 0.5, DType::f64), {1}, {0});
  const Term by_x = jacobian_by(b, product, 0).terms.at(0);
  EXPECT_FALSE(by_x.value.has_value());
  EXPECT_EQ(by_x.coefficient, 0.5);
}

}  // namespace
}  // namespace loipe::ops
