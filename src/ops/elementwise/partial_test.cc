// SPDX-License-Identifier: Apache-2.0
// What the local Jacobians of elementwise ops store: as little as possible.
#include <gtest/gtest.h>

#include "ops/emit.h"
#include "ops/op_list.h"
#include "ops/test_call.h"

namespace loipe::ops {
namespace {

using loipe::testing::jacobian_by;

struct Fixture : ::testing::Test {
  Builder b;
  Value x = b.argument("x", {DType::f64, {2, 3}});
  Value y = b.argument("y", {DType::f64, {1, 3}});

  Term only_term(Value node, std::size_t operand_index) {
    const LocalJacobian jacobian = jacobian_by(b, node, operand_index);
    EXPECT_EQ(jacobian.terms.size(), 1u);
    return jacobian.terms.at(0);
  }
};

using Partials = Fixture;

TEST_F(Partials, OfSumsAreUnits) {
  EXPECT_TRUE(only_term(add(b, x, y), 0).is_unit());
  EXPECT_EQ(only_term(sub(b, x, y), 1).coefficient, -1);
  EXPECT_TRUE(only_term(neg(b, x), 0).is_unit());
}

TEST_F(Partials, OfAProductAreTheOtherOperandInItsOwnShape) {
  const Value product = mul(b, x, y);
  const Term by_x = only_term(product, 0);
  ASSERT_TRUE(by_x.value.has_value());
  EXPECT_EQ(by_x.stored_elements(), 3);
  EXPECT_EQ(only_term(product, 1).value->value, x);
}

TEST_F(Partials, OfExpIsTheResult) {
  const Value result = exp(b, x);
  EXPECT_EQ(only_term(result, 0).value->value, result);
}

TEST_F(Partials, ByAConstantFactorAreACoefficient) {
  const Term by_y = only_term(mul(b, 3, y), 1);
  EXPECT_FALSE(by_y.value.has_value());
  EXPECT_EQ(by_y.coefficient, 3);
  EXPECT_EQ(only_term(div(b, x, b.scalar(4, DType::f64)), 0).coefficient, 0.25);
  EXPECT_EQ(only_term(mul(b, x, full(b, {2, 3}, 5, DType::f64)), 0).coefficient, 5);
}

TEST_F(Partials, ByAFactorZeroAreNoEdge) { EXPECT_TRUE(jacobian_by(b, mul(b, 0, x), 1).is_zero()); }

TEST_F(Partials, OfAQuotientShareTheReciprocalInTheShapeOfTheDivisor) {
  const Value quotient = div(b, x, y);
  EXPECT_EQ(only_term(quotient, 0).stored_elements(), 3);
  EXPECT_EQ(only_term(quotient, 1).coefficient, -1);
}

TEST_F(Partials, OfIntegerPowersNeedNoPowerUpToTheSquare) {
  EXPECT_TRUE(jacobian_by(b, integer_pow(b, x, 0), 0).is_zero());
  EXPECT_TRUE(only_term(integer_pow(b, x, 1), 0).is_unit());
  const Value slope = only_term(integer_pow(b, x, 2), 0).value->value;
  EXPECT_EQ(&b.program().op(slope), &op_mul) << "2 x, without a power";
}

TEST_F(Partials, OfSelectAreUnitsBehindAMask) {
  const Value condition = gt(b, x, y);
  const Term taken = only_term(select(b, condition, x, y), 1);
  EXPECT_TRUE(taken.is_unit());
  EXPECT_EQ(taken.mask->value, condition);
}

TEST_F(Partials, OfStepFunctionsAreNoEdge) {
  for (const OpDef* op : {&op_floor, &op_ceil, &op_round, &op_sign, &op_stop_gradient})
    EXPECT_TRUE(jacobian_by(b, b.emit(*op, {x}), 0).is_zero()) << op->name.value;
}

TEST_F(Partials, OfARankZeroOperandSumTheResult) {
  const Value scale = b.argument("scale", {DType::f64, {}});
  const Term by_scale = only_term(mul(b, scale, x), 0);
  EXPECT_TRUE(by_scale.in.empty());
  EXPECT_EQ(by_scale.value->value, x);
}

}  // namespace
}  // namespace loipe::ops
