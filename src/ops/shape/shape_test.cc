// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/emit.h"
#include "ops/shape/reshape_groups.h"
#include "ops/test_call.h"

namespace loipe::ops {
namespace {

using loipe::testing::call;
using loipe::testing::elements;
using loipe::testing::infer_error;
using loipe::testing::jacobian_by;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Tensor kMatrix = Tensor::of<double>({2, 3}, {1, 2, 3, 4, 5, 6});
const Tensor kVector = Tensor::of<double>({5}, {1, 2, 3, 4, 5});
const TensorType kMatrixType{DType::f64, {2, 3}};

TEST(Transpose, Values) {
  const Tensor result = call("transpose", {kMatrix}, {{"permutation", Integers{1, 0}}});
  EXPECT_EQ(result.shape(), (Shape{3, 2}));
  EXPECT_THAT(elements<double>(result), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(Transpose, Errors) {
  EXPECT_THAT(infer_error("transpose", {kMatrixType}, {{"permutation", Integers{0}}}),
              HasSubstr("permutation=[0] has 1 entries, expected one for each of the operand's 2 axes"));
  EXPECT_THAT(infer_error("transpose", {kMatrixType}, {{"permutation", Integers{0, 0}}}),
              HasSubstr("permutation=[0,0] names axis 0 twice"));
  EXPECT_THAT(infer_error("transpose", {kMatrixType}, {{"permutation", Integers{0, 2}}}),
              HasSubstr("names axis 2, but the operand has rank 2"));
}

TEST(BroadcastInDim, Values) {
  const Tensor row = Tensor::of<double>({3}, {1, 2, 3});
  const Tensor result =
      call("broadcast_in_dim", {row}, {{"shape", Integers{2, 3}}, {"dimensions", Integers{1}}});
  EXPECT_THAT(elements<double>(result), ElementsAre(1, 2, 3, 1, 2, 3));
  const Tensor one = Tensor::of<double>({1}, {7});
  EXPECT_THAT(elements<double>(
                  call("broadcast_in_dim", {one}, {{"shape", Integers{2}}, {"dimensions", Integers{0}}})),
              ElementsAre(7, 7));
}

TEST(BroadcastInDim, Errors) {
  const auto error = [](Integers shape, Integers dimensions) {
    return infer_error("broadcast_in_dim", {kMatrixType}, {{"shape", shape}, {"dimensions", dimensions}});
  };
  EXPECT_THAT(error({2, 4}, {0, 1}), HasSubstr("axis 1 of extent 3 does not broadcast to extent 4"));
  EXPECT_THAT(error({3, 2}, {1, 0}), HasSubstr("dimensions=[1,0] must increase"));
  EXPECT_THAT(error({2, 3}, {0, 2}), HasSubstr("names axis 2, but shape=[2,3] has rank 2"));
  EXPECT_THAT(error({2, 3}, {0}), HasSubstr("has 1 entries"));
}

TEST(Reshape, KeepsTheElements) {
  const Tensor result = call("reshape", {kMatrix}, {{"shape", Integers{3, 2}}});
  EXPECT_EQ(result.shape(), (Shape{3, 2}));
  EXPECT_EQ(elements<double>(result), elements<double>(kMatrix));
  EXPECT_THAT(infer_error("reshape", {kMatrixType}, {{"shape", Integers{4}}}),
              HasSubstr("shape=[4] holds 4 elements, expected the operand's 6"));
  EXPECT_THAT(infer_error("reshape", {kMatrixType}, {{"shape", Integers{-1, 6}}}),
              HasSubstr("negative extent"));
}

std::vector<std::size_t> digit_counts(const Shape& in, const Shape& out) {
  std::vector<std::size_t> counts;
  for (const ReshapeGroup& group : reshape_groups(in, out)) counts.push_back(group.digits.size());
  return counts;
}

TEST(ReshapeGroups, OutermostFirst) {
  EXPECT_THAT(digit_counts({2, 3}, {6}), ElementsAre(2));
  EXPECT_THAT(digit_counts({4, 6}, {4, 2, 3}), ElementsAre(1, 2));
  EXPECT_THAT(digit_counts({2, 6}, {4, 3}), ElementsAre(3));
  EXPECT_THAT(digit_counts({1, 2, 1}, {2, 1, 1}), ElementsAre(1));
  EXPECT_TRUE(digit_counts({1, 1}, {}).empty());
}

TEST(ReshapeGroups, NoCommonDigitsWhenNoBoundaryDividesTheOther) {
  EXPECT_THAT(digit_counts({4, 6}, {6, 4}), ElementsAre(0));
  EXPECT_THAT(digit_counts({5, 4, 6}, {5, 6, 4}), ElementsAre(1, 0));
}

TEST(ReshapeJacobian, IsAffineWhereItCanBe) {
  Builder b;
  const Value x = b.argument("x", {DType::f64, {4, 6}});
  const LocalJacobian merged = jacobian_by(b, reshape(b, x, {24}), 0);
  EXPECT_EQ(to_string(merged.terms.at(0)), "(6*a+b | a, b) a<4, b<6 : 1.0");
  const LocalJacobian mixed = jacobian_by(b, reshape(b, x, {6, 4}), 0);
  EXPECT_FALSE(mixed.terms.at(0).in[0].is_affine());
  EXPECT_EQ(mixed.terms.at(0).extents, (std::vector<std::int64_t>{24}));
}

TEST(Slice, Values) {
  const auto sliced = [](Integers start, Integers limit, Integers stride) {
    return elements<double>(
        call("slice", {kVector}, {{"start", start}, {"limit", limit}, {"stride", stride}}));
  };
  EXPECT_THAT(sliced({1}, {4}, {1}), ElementsAre(2, 3, 4));
  EXPECT_THAT(sliced({0}, {5}, {2}), ElementsAre(1, 3, 5));
  EXPECT_THAT(sliced({2}, {2}, {1}), ElementsAre());
  EXPECT_THAT(elements<double>(call("slice", {kVector}, {{"start", Integers{3}}, {"limit", Integers{5}}})),
              ElementsAre(4, 5));
}

TEST(Slice, Errors) {
  const TensorType type{DType::f64, {5}};
  EXPECT_THAT(infer_error("slice", {type}, {{"start", Integers{1}}, {"limit", Integers{6}}}),
              HasSubstr("axis 0 is sliced from 1 to 6, expected 0 <= start <= limit <= extent 5"));
  EXPECT_THAT(
      infer_error("slice", {type}, {{"start", Integers{1}}, {"limit", Integers{2}}, {"stride", Integers{0}}}),
      HasSubstr("stride=[0] must be at least 1"));
}

TEST(SliceJacobian, IsAWindow) {
  Builder b;
  const Value x = b.argument("x", {DType::f64, {7}});
  EXPECT_EQ(to_string(jacobian_by(b, slice(b, x, {1}, {7}, {2}), 0).terms.at(0)), "(a | 2*a+1) a<3 : 1.0");
}

Tensor padded(const Tensor& x, std::int64_t low, std::int64_t high, std::int64_t interior) {
  return call("pad", {x, Tensor::scalar(9.0)},
              {{"low", Integers{low}}, {"high", Integers{high}}, {"interior", Integers{interior}}});
}

TEST(Pad, Values) {
  const Tensor x = Tensor::of<double>({3}, {1, 2, 3});
  EXPECT_THAT(elements<double>(padded(x, 1, 2, 0)), ElementsAre(9, 1, 2, 3, 9, 9));
  EXPECT_THAT(elements<double>(padded(x, 0, 0, 1)), ElementsAre(1, 9, 2, 9, 3));
  EXPECT_THAT(elements<double>(padded(x, -1, -1, 0)), ElementsAre(2));
  EXPECT_THAT(elements<double>(padded(x, -1, 1, 1)), ElementsAre(9, 2, 9, 3, 9));
  EXPECT_THAT(elements<double>(padded(x, -3, 2, 0)), ElementsAre(9, 9));
  EXPECT_THAT(elements<double>(padded(Tensor(TensorType{DType::f64, {0}}), 1, 1, 5)), ElementsAre(9, 9));
}

TEST(Pad, Errors) {
  const Attributes attributes{{"low", Integers{-2}}, {"high", Integers{-2}}, {"interior", Integers{0}}};
  EXPECT_THAT(infer_error("pad", {{DType::f64, {3}}, {DType::f64, {}}}, attributes),
              HasSubstr("axis 0 of extent 3 would get the extent -1 from low=-2, high=-2, interior=0"));
  EXPECT_THAT(infer_error("pad", {{DType::f64, {3}}, {DType::f64, {1}}}, attributes),
              HasSubstr("the padding value is f64[1], expected f64[]"));
  EXPECT_THAT(infer_error("pad", {{DType::f64, {3}}, {DType::f64, {}}},
                          {{"low", Integers{0}}, {"high", Integers{0}}, {"interior", Integers{-1}}}),
              HasSubstr("interior=[-1] must not be negative"));
}

TEST(Concatenate, Values) {
  const Tensor column = Tensor::of<double>({2, 1}, {8, 9});
  const Tensor result = call("concatenate", {kMatrix, column}, {{"axis", std::int64_t{1}}});
  EXPECT_EQ(result.shape(), (Shape{2, 4}));
  EXPECT_THAT(elements<double>(result), ElementsAre(1, 2, 3, 8, 4, 5, 6, 9));
}

TEST(Concatenate, Errors) {
  EXPECT_THAT(infer_error("concatenate", {kMatrixType, {DType::f64, {2, 2}}}, {{"axis", std::int64_t{0}}}),
              HasSubstr("operand 1 is f64[2,2], expected f64[2,3] up to the extent of axis 0"));
  EXPECT_THAT(infer_error("concatenate", {kMatrixType, {DType::f64, {3}}}, {{"axis", std::int64_t{0}}}),
              HasSubstr("operand 1 is f64[3]"));
  EXPECT_THAT(infer_error("concatenate", {kMatrixType}, {{"axis", std::int64_t{2}}}),
              HasSubstr("axis=2 is not an axis of operands of rank 2"));
}

TEST(ConcatenateJacobian, StartsAfterTheOperandsBefore) {
  Builder b;
  const Value x = b.argument("x", {DType::f64, {3}}), y = b.argument("y", {DType::f64, {2}});
  const Value parts[] = {x, y};
  EXPECT_EQ(to_string(jacobian_by(b, concatenate(b, parts, 0), 1).terms.at(0)), "(a+3 | a) a<2 : 1.0");
}

}  // namespace
}  // namespace loipe::ops
