// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "jacobian/arithmetic.h"
#include "jacobian/rules.h"

namespace loipe {
namespace {

struct Fixture {
  Builder builder;
  Recorder recorder{builder};
};

/// coefficient * identity of (n).
LocalJacobian scaled_identity(Builder& builder, std::int64_t n, double coefficient) {
  TermDraft draft;
  const Label a = draft.label(n);
  return draft.out({a}).in({a}).coefficient(coefficient).finish(builder);
}

LocalJacobian dense(Builder& builder, Value value) {
  TermDraft draft;
  const Label a = draft.label(builder.shape(value)[0]), b = draft.label(builder.shape(value)[1]);
  return draft.out({a}).in({b}).value(value, {a, b}).finish(builder);
}

TEST(Add, EqualConstantPatternsAddTheirCoefficients) {
  Fixture f;
  LocalJacobian sum = scaled_identity(f.builder, 4, 1);
  add(f.recorder, sum, scaled_identity(f.builder, 4, 2), {4}, {4});
  ASSERT_EQ(sum.terms.size(), 1u);
  EXPECT_EQ(sum.terms[0].coefficient, 3);
  EXPECT_EQ(f.builder.program().size(), 0u);
}

TEST(Add, OppositeConstantsCancelToAStructuralZero) {
  Fixture f;
  LocalJacobian sum = scaled_identity(f.builder, 4, 1);
  add(f.recorder, sum, scaled_identity(f.builder, 4, -1), {4}, {4});
  EXPECT_TRUE(sum.is_zero());
}

TEST(Add, AnIdentityJoinsADenseMatrixThatIsThereAnyway) {
  Fixture f;
  const Value m = f.builder.argument("M", {DType::f64, {4, 4}});
  LocalJacobian sum = dense(f.builder, m);
  add(f.recorder, sum, scaled_identity(f.builder, 4, 1), {4}, {4});
  ASSERT_EQ(sum.terms.size(), 1u);
  // Only the diagonal is touched: four additions, and no identity matrix is built.
  EXPECT_EQ(f.recorder.cost(), (ActualCost{0, 4}));
}

TEST(Add, AnIdentityAndAConstantMatrixStayAList) {
  // I - 1/n: joined they would be a dense n x n array.
  Fixture f;
  LocalJacobian sum = scaled_identity(f.builder, 4, 1);
  TermDraft mean;
  const Label a = mean.label(4), b = mean.label(4);
  add(f.recorder, sum, mean.out({a}).in({b}).coefficient(-0.25).finish(f.builder), {4}, {4});
  EXPECT_EQ(sum.terms.size(), 2u);
  EXPECT_EQ(f.builder.program().size(), 0u);
}

TEST(Add, ABareLabelIsSplitToMeetAList) {
  // Values over (6) by (6) on the diagonal, one of them known as (2,3) digits.
  Fixture f;
  const Value v = f.builder.argument("v", {DType::f64, {6}}),
              w = f.builder.argument("w", {DType::f64, {2, 3}});
  TermDraft plain, digits;
  const Label a = plain.label(6);
  LocalJacobian sum = plain.out({a}).in({a}).value(v, {a}).finish(f.builder);
  const Label i = digits.label(2), j = digits.label(3);
  Coordinate list = Coordinate::of(i, 3);
  add_affine(list, Coordinate::of(j), 1);
  add(f.recorder, sum, digits.out_axis(list).in_axis(list).value(w, {i, j}).finish(f.builder), {6}, {6});
  ASSERT_EQ(sum.terms.size(), 1u);
  EXPECT_EQ(f.recorder.cost(), (ActualCost{0, 6}));
}

TEST(Add, TermsWithTheSameMaskKeepIt) {
  Fixture f;
  const Value v = f.builder.argument("v", {DType::f64, {3}}),
              m = f.builder.argument("m", {DType::boolean, {3}});
  auto masked = [&](double coefficient) {
    TermDraft draft;
    const Label a = draft.label(3);
    return draft.out({a}).in({a}).coefficient(coefficient).value(v, {a}).mask(m, {a}).finish(f.builder);
  };
  LocalJacobian sum = masked(1);
  add(f.recorder, sum, masked(1), {3}, {3});
  ASSERT_EQ(sum.terms.size(), 1u);
  EXPECT_TRUE(sum.terms[0].mask.has_value());
}

}  // namespace
}  // namespace loipe
