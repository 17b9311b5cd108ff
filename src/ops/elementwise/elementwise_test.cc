// SPDX-License-Identifier: Apache-2.0
// Values and messages of elementwise ops. Their derivatives are tested for all
// samples by tests/conformance.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/test_call.h"

namespace loipe::ops {
namespace {

using loipe::testing::call;
using loipe::testing::elements;
using loipe::testing::infer_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");
constexpr std::int32_t kLargest = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kSmallest = std::numeric_limits<std::int32_t>::min();

std::int32_t call_i32(std::string_view op, std::int32_t x, std::int32_t y) {
  return elements<std::int32_t>(call(op, {Tensor::scalar(x), Tensor::scalar(y)}))[0];
}

TEST(Elementwise, UnaryValues) {
  const struct {
    const char* op;
    double x, expected;
  } kCases[] = {
      {"neg", 2, -2},
      {"abs", -3, 3},
      {"sign", -3, -1},
      {"floor", -0.5, -1},
      {"ceil", 0.5, 1},
      {"exp", 1, 2.718281828459045},
      {"exp2", 3, 8},
      {"expm1", 1e-20, 1e-20},
      {"log", 7.38905609893065, 2},
      {"log1p", 1e-20, 1e-20},
      {"sqrt", 9, 3},
      {"rsqrt", 4, 0.5},
      {"cbrt", -8, -2},
      {"sin", 0.5, 0.479425538604203},
      {"cos", 0.5, 0.8775825618903728},
      {"tan", 0.5, 0.5463024898437905},
      {"asin", 0.5, 0.5235987755982989},
      {"acos", 0.5, 1.0471975511965979},
      {"atan", 1, 0.7853981633974483},
      {"sinh", 1, 1.1752011936438014},
      {"cosh", 1, 1.5430806348152437},
      {"tanh", 0.5, 0.46211715726000973},
      {"asinh", 1, 0.881373587019543},
      {"acosh", 2, 1.3169578969248166},
      {"atanh", 0.5, 0.5493061443340548},
      {"logistic", 0, 0.5},
      {"erf", 0.5, 0.5204998778130465},
      {"erfc", 0.5, 0.4795001221869535},
  };
  for (const auto& c : kCases) EXPECT_DOUBLE_EQ(call(c.op, {Tensor::scalar(c.x)}).at(0), c.expected) << c.op;
}

TEST(Elementwise, BinaryValues) {
  const auto value = [](const char* op, double x, double y) {
    return call(op, {Tensor::scalar(x), Tensor::scalar(y)}).at(0);
  };
  EXPECT_EQ(value("add", 2, 3), 5);
  EXPECT_EQ(value("sub", 2, 3), -1);
  EXPECT_EQ(value("mul", 2, 3), 6);
  EXPECT_EQ(value("div", 3, 2), 1.5);
  EXPECT_EQ(value("pow", 2, -2), 0.25);
  EXPECT_EQ(value("rem", -7, 3), -1);
  EXPECT_DOUBLE_EQ(value("atan2", 1, -1), 2.356194490192345);
  EXPECT_EQ(value("max", 2, 3), 3);
  EXPECT_EQ(value("min", 2, 3), 2);
}

TEST(Elementwise, RoundTakesTheEvenOneOfTwo) {
  const Tensor x = Tensor::of<double>({6}, {-2.5, -1.5, -0.5, 0.5, 1.5, 2.4999});
  EXPECT_THAT(elements<double>(call("round", {x})), ElementsAre(-2, -2, 0, 0, 2, 2));
}

TEST(Elementwise, NanPropagatesThroughMaxMinAndSign) {
  for (const char* op : {"max", "min"}) {
    EXPECT_TRUE(std::isnan(call(op, {Tensor::scalar(kNan), Tensor::scalar(1.0)}).at(0))) << op;
    EXPECT_TRUE(std::isnan(call(op, {Tensor::scalar(1.0), Tensor::scalar(kNan)}).at(0))) << op;
  }
  EXPECT_TRUE(std::isnan(call("sign", {Tensor::scalar(kNan)}).at(0)));
}

TEST(Elementwise, NanEqualsNothing) {
  const auto holds = [](const char* op) {
    return call(op, {Tensor::scalar(kNan), Tensor::scalar(kNan)}).at(0) != 0;
  };
  for (const char* op : {"eq", "lt", "le", "gt", "ge"}) EXPECT_FALSE(holds(op)) << op;
  EXPECT_TRUE(holds("ne"));
}

TEST(Elementwise, LogisticDoesNotOverflow) {
  EXPECT_EQ(call("logistic", {Tensor::scalar(-1000.0)}).at(0), 0);
  EXPECT_EQ(call("logistic", {Tensor::scalar(1000.0)}).at(0), 1);
}

TEST(Elementwise, IntegersWrapAround) {
  EXPECT_EQ(call_i32("add", kLargest, 1), kSmallest);
  EXPECT_EQ(call_i32("sub", kSmallest, 1), kLargest);
  EXPECT_EQ(call_i32("mul", kLargest, 2), -2);
  EXPECT_EQ(elements<std::int32_t>(call("neg", {Tensor::scalar(kSmallest)}))[0], kSmallest);
  EXPECT_EQ(elements<std::int32_t>(call("abs", {Tensor::scalar(kSmallest)}))[0], kSmallest);
}

TEST(Elementwise, IntegerDivisionTruncatesAndIsDefinedEverywhere) {
  EXPECT_EQ(call_i32("div", -7, 2), -3);
  EXPECT_EQ(call_i32("div", 7, 0), 0);
  EXPECT_EQ(call_i32("div", kSmallest, -1), kSmallest);
  EXPECT_EQ(call_i32("rem", -7, 2), -1);
  EXPECT_EQ(call_i32("rem", 7, 0), 7);
  EXPECT_EQ(call_i32("rem", kSmallest, -1), 0);
}

TEST(Elementwise, IntegerPow) {
  const auto power = [](Tensor x, std::int64_t y) {
    return call("integer_pow", {std::move(x)}, {{"y", y}}).at(0);
  };
  EXPECT_EQ(power(Tensor::scalar(-2.0), 5), -32);
  EXPECT_EQ(power(Tensor::scalar(2.0), -2), 0.25);
  EXPECT_EQ(power(Tensor::scalar(0.0), 0), 1);
  EXPECT_EQ(power(Tensor::scalar(std::int32_t{3}), 4), 81);
  EXPECT_EQ(power(Tensor::scalar(std::int32_t{-1}), -3), -1);
  EXPECT_EQ(power(Tensor::scalar(std::int32_t{2}), -1), 0);
  EXPECT_EQ(power(Tensor::scalar(1.0), std::numeric_limits<std::int64_t>::min()), 1);
}

TEST(Elementwise, LogicOfBoolAndIntegers) {
  EXPECT_EQ(call_i32("and", 12, 10), 8);
  EXPECT_EQ(call_i32("or", 12, 10), 14);
  EXPECT_EQ(call_i32("xor", 12, 10), 6);
  EXPECT_EQ(elements<std::int32_t>(call("not", {Tensor::scalar(std::int32_t{0})}))[0], -1);
  const Tensor a = Tensor::of<bool>({4}, {false, false, true, true});
  const Tensor b = Tensor::of<bool>({4}, {false, true, false, true});
  EXPECT_THAT(elements<bool>(call("and", {a, b})), ElementsAre(false, false, false, true));
  EXPECT_THAT(elements<bool>(call("or", {a, b})), ElementsAre(false, true, true, true));
  EXPECT_THAT(elements<bool>(call("xor", {a, b})), ElementsAre(false, true, true, false));
  EXPECT_THAT(elements<bool>(call("not", {a})), ElementsAre(true, true, false, false));
}

TEST(Elementwise, OperandsBroadcast) {
  const Tensor column = Tensor::of<double>({2, 1}, {10, 20}), row = Tensor::of<double>({1, 3}, {1, 2, 3});
  const Tensor sum = call("add", {column, row});
  EXPECT_EQ(sum.shape(), (Shape{2, 3}));
  EXPECT_THAT(elements<double>(sum), ElementsAre(11, 12, 13, 21, 22, 23));
  EXPECT_THAT(elements<double>(call("sub", {Tensor::scalar(1.0), row})), ElementsAre(0, -1, -2));
  EXPECT_EQ(call("add", {Tensor(TensorType{DType::f64, {0, 3}}), row}).shape(), (Shape{0, 3}));
}

TEST(Elementwise, SelectTakesAnInfinityOrNanOnlyWhereTheConditionSays) {
  const Tensor condition = Tensor::of<bool>({2}, {true, false});
  const Tensor x = Tensor::of<double>({2}, {1, kNan}), y = Tensor::of<double>({2}, {kInfinity, 2});
  EXPECT_THAT(elements<double>(call("select", {condition, x, y})), ElementsAre(1, 2));
}

TEST(ElementwiseErrors, ShapesThatDoNotBroadcast) {
  EXPECT_THAT(infer_error("add", {{DType::f64, {2, 3}}, {DType::f64, {4, 3}}}),
              HasSubstr("add(f64[2,3], f64[4,3]): shapes [2,3] and [4,3] do not broadcast: expected rank 0"));
  EXPECT_THAT(infer_error("mul", {{DType::f64, {3}}, {DType::f64, {2, 3}}}),
              HasSubstr("shapes [3] and [2,3] do not broadcast"));
}

TEST(ElementwiseErrors, Dtypes) {
  EXPECT_THAT(infer_error("add", {{DType::f64, {}}, {DType::f32, {}}}),
              HasSubstr("operands have dtypes f64 and f32, expected one dtype"));
  EXPECT_THAT(infer_error("exp", {{DType::i32, {}}}),
              HasSubstr("operands have dtype i32, expected floating point"));
  EXPECT_THAT(infer_error("add", {{DType::boolean, {}}, {DType::boolean, {}}}),
              HasSubstr("expected a number type"));
  EXPECT_THAT(infer_error("and", {{DType::f64, {}}, {DType::f64, {}}}),
              HasSubstr("expected bool or an integer type"));
  EXPECT_THAT(infer_error("select", {{DType::f64, {}}, {DType::f64, {}}, {DType::f64, {}}}),
              HasSubstr("the condition has dtype f64, expected bool"));
  EXPECT_THAT(infer_error("select", {{DType::boolean, {}}, {DType::f64, {}}, {DType::i32, {}}}),
              HasSubstr("the branches have dtypes f64 and i32"));
}

TEST(ElementwiseErrors, IntegerPowNeedsItsExponent) {
  EXPECT_THAT(infer_error("integer_pow", {{DType::f64, {}}}), HasSubstr("attribute 'y' is missing"));
  EXPECT_THAT(infer_error("integer_pow", {{DType::f64, {}}}, {{"y", 2.0}}),
              HasSubstr("attribute 'y' must be an integer"));
}

TEST(ElementwiseErrors, NumberOfOperands) {
  EXPECT_THAT(infer_error("exp", {{DType::f64, {}}, {DType::f64, {}}}),
              HasSubstr("expected 1 operand, got 2"));
}

}  // namespace
}  // namespace loipe::ops
