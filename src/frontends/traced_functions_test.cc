// SPDX-License-Identifier: Apache-2.0
// Every function of loipe/trace.h once: the op that it records, and its value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "frontends/trace.h"
#include "ir/interpreter.h"

namespace loipe {
namespace {

using testing::ElementsAre;

/// What a function of these arguments gives.
struct Result {
  Program program;
  Tensor value;

  std::vector<std::string> ops() const {
    std::vector<std::string> names;
    const std::vector<int> vertices = program.vertex_numbers();
    for (std::uint32_t i = 0; i < program.size(); ++i)
      if (vertices[i] > 0) names.emplace_back(program.op(Value{i}).name.value);
    return names;
  }
  std::vector<double> elements() const {
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < value.element_count(); ++i) numbers.push_back(value.at(i));
    return numbers;
  }
};

Result run(const std::vector<Tensor>& tensors,
           const std::function<Traced(std::span<const Traced>)>& function) {
  std::vector<Argument> arguments;
  for (const Tensor& tensor : tensors)
    arguments.push_back({"x" + std::to_string(arguments.size()), tensor.type()});
  Program program =
      trace("main", arguments, [&](std::span<const Traced> x) { return std::vector{function(x)}; });
  Tensor value = evaluate(program, tensors)[0];
  return {std::move(program), std::move(value)};
}

Result unary(Traced (*function)(const Traced&), double x) {
  return run({Tensor::scalar(x)}, [=](auto arguments) { return function(arguments[0]); });
}

struct UnaryCase {
  const char* op;
  Traced (*traced)(const Traced&);
  double (*expected)(double);
  double at;
};

const UnaryCase kUnaryCases[] = {
    {"neg", neg, [](double x) { return -x; }, 0.7},
    {"abs", abs, [](double x) { return std::abs(x); }, -0.7},
    {"sign", sign, [](double x) { return x < 0 ? -1.0 : 1.0; }, -0.7},
    {"floor", floor, [](double x) { return std::floor(x); }, -0.7},
    {"ceil", ceil, [](double x) { return std::ceil(x); }, 0.7},
    {"round", round, [](double x) { return std::nearbyint(x); }, 2.5},
    {"exp", exp, [](double x) { return std::exp(x); }, 0.7},
    {"exp2", exp2, [](double x) { return std::exp2(x); }, 0.7},
    {"expm1", expm1, [](double x) { return std::expm1(x); }, 0.7},
    {"log", log, [](double x) { return std::log(x); }, 0.7},
    {"log1p", log1p, [](double x) { return std::log1p(x); }, 0.7},
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, 0.7},
    {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0.7},
    {"cbrt", cbrt, [](double x) { return std::cbrt(x); }, 0.7},
    {"sin", sin, [](double x) { return std::sin(x); }, 0.7},
    {"cos", cos, [](double x) { return std::cos(x); }, 0.7},
    {"tan", tan, [](double x) { return std::tan(x); }, 0.7},
    {"asin", asin, [](double x) { return std::asin(x); }, 0.7},
    {"acos", acos, [](double x) { return std::acos(x); }, 0.7},
    {"atan", atan, [](double x) { return std::atan(x); }, 0.7},
    {"sinh", sinh, [](double x) { return std::sinh(x); }, 0.7},
    {"cosh", cosh, [](double x) { return std::cosh(x); }, 0.7},
    {"tanh", tanh, [](double x) { return std::tanh(x); }, 0.7},
    {"asinh", asinh, [](double x) { return std::asinh(x); }, 0.7},
    {"acosh", acosh, [](double x) { return std::acosh(x); }, 1.7},
    {"atanh", atanh, [](double x) { return std::atanh(x); }, 0.7},
    {"logistic", logistic, [](double x) { return 1 / (1 + std::exp(-x)); }, 0.7},
    {"erf", erf, [](double x) { return std::erf(x); }, 0.7},
    {"erfc", erfc, [](double x) { return std::erfc(x); }, 0.7},
    {"integer_pow", square, [](double x) { return x * x; }, 0.7},
    {"stop_gradient", stop_gradient, [](double x) { return x; }, 0.7},
};

TEST(TracedFunctions, Unary) {
  for (const UnaryCase& c : kUnaryCases) {
    const Result result = unary(c.traced, c.at);
    EXPECT_THAT(result.ops(), ElementsAre(c.op));
    EXPECT_NEAR(result.value.at(0), c.expected(c.at), 1e-15 * (1 + std::abs(c.expected(c.at)))) << c.op;
  }
}

/// Binary operators and functions on 7 and 2: two tensors, and a number on each side.
struct BinaryCase {
  const char* op;
  Traced (*both)(const Traced&, const Traced&);
  Traced (*right)(const Traced&);  // of 7, beside the number 2
  Traced (*left)(const Traced&);   // of 2, beside the number 7
  double expected;
};

#define LOIPE_BINARY_CASE(op, expression, expected)                         \
  {op, [](const Traced& x, const Traced& y) { return Traced(expression); }, \
   [](const Traced& x) {                                                    \
     [[maybe_unused]] const int y = 2;                                      \
     return Traced(expression);                                             \
   },                                                                       \
   [](const Traced& y) {                                                    \
     [[maybe_unused]] const int x = 7;                                      \
     return Traced(expression);                                             \
   },                                                                       \
   expected}

const BinaryCase kBinaryCases[] = {
    LOIPE_BINARY_CASE("add", x + y, 9),      LOIPE_BINARY_CASE("sub", x - y, 5),
    LOIPE_BINARY_CASE("mul", x* y, 14),      LOIPE_BINARY_CASE("div", x / y, 3.5),
    LOIPE_BINARY_CASE("pow", pow(x, y), 49), LOIPE_BINARY_CASE("atan2", atan2(x, y), std::atan2(7, 2)),
    LOIPE_BINARY_CASE("max", max(x, y), 7),  LOIPE_BINARY_CASE("min", min(x, y), 2),
    LOIPE_BINARY_CASE("rem", rem(x, y), 1),  LOIPE_BINARY_CASE("eq", x == y, 0),
    LOIPE_BINARY_CASE("ne", x != y, 1),      LOIPE_BINARY_CASE("lt", x < y, 0),
    LOIPE_BINARY_CASE("le", x <= y, 0),      LOIPE_BINARY_CASE("gt", x > y, 1),
    LOIPE_BINARY_CASE("ge", x >= y, 1),
};

#undef LOIPE_BINARY_CASE

TEST(TracedFunctions, BinaryWithNumbersOnEitherSide) {
  const Tensor seven = Tensor::scalar(7.0), two = Tensor::scalar(2.0);
  for (const BinaryCase& c : kBinaryCases) {
    const Result results[] = {run({seven, two}, [&](auto x) { return c.both(x[0], x[1]); }),
                              run({seven}, [&](auto x) { return c.right(x[0]); }),
                              run({two}, [&](auto x) { return c.left(x[0]); })};
    for (const Result& result : results) {
      EXPECT_THAT(result.ops(), ElementsAre(c.op));
      EXPECT_DOUBLE_EQ(result.value.at(0), c.expected) << c.op;
    }
  }
}

TEST(TracedFunctions, CompoundAssignment) {
  const Result result = run({Tensor::scalar(7.0)}, [](auto x) {
    Traced y = x[0];
    y += 1;
    y *= x[0];
    y -= 0.5;
    y /= 2.0f;
    return y;
  });
  EXPECT_THAT(result.ops(), ElementsAre("add", "mul", "sub", "div"));
  EXPECT_EQ(result.value.at(0), 27.75);
}

TEST(TracedFunctions, IntegerPowers) {
  const auto power = [](std::int64_t n) {
    return run({Tensor::scalar(2.0)}, [=](auto x) { return integer_pow(x[0], n); });
  };
  EXPECT_EQ(power(3).value.at(0), 8.0);
  EXPECT_EQ(power(-1).value.at(0), 0.5);
  EXPECT_THAT(power(1).ops(), ElementsAre("integer_pow"));
}

const Tensor kRow = Tensor::of<double>({3}, {1, 2, 3});
const Tensor kTable = Tensor::of<double>({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(TracedFunctions, RankPromotionAddsLeadingAxes) {
  const Result result = run({kTable, kRow}, [](auto x) { return x[1] - x[0]; });
  EXPECT_THAT(result.ops(), ElementsAre("broadcast_in_dim", "sub"));
  EXPECT_THAT(result.elements(), ElementsAre(0, 0, 0, -3, -3, -3));
  const Value promoted = result.program.operands(result.program.outputs()[0])[0];
  EXPECT_EQ(result.program.shape(promoted), (Shape{1, 3}));
  const Result scalar = run({kTable, Tensor::scalar(10.0)}, [](auto x) { return x[0] * x[1]; });
  EXPECT_THAT(scalar.ops(), ElementsAre("mul"));
}

TEST(TracedFunctions, SelectAndLogic) {
  const Result relu =
      run({Tensor::of<double>({3}, {-1, 0, 2})}, [](auto x) { return select(x[0] > 0, x[0], 0); });
  EXPECT_THAT(relu.ops(), ElementsAre("gt", "select"));
  EXPECT_THAT(relu.elements(), ElementsAre(0, 0, 2));
  const Result between = run({kRow}, [](auto x) {
    const Traced low = x[0] < 2;
    const Traced high = x[0] > 2;
    return logical_not(logical_or(low, logical_and(high, true)));
  });
  EXPECT_THAT(between.ops(), ElementsAre("lt", "gt", "and", "or", "not"));
  EXPECT_THAT(between.elements(), ElementsAre(0, 1, 0));
  const Result promoted = run({kTable, kRow}, [](auto x) { return select(x[1] < 3, x[0], -1); });
  EXPECT_THAT(promoted.elements(), ElementsAre(1, 2, -1, 4, 5, -1));
}

TEST(TracedFunctions, Products) {
  const Result matrix = run({kTable}, [](auto x) { return matmul(x[0], transpose(x[0])); });
  EXPECT_THAT(matrix.ops(), ElementsAre("transpose", "dot_general"));
  EXPECT_THAT(matrix.elements(), ElementsAre(14, 32, 32, 77));
  EXPECT_THAT(run({kTable, kRow}, [](auto x) { return matmul(x[0], x[1]); }).elements(), ElementsAre(14, 32));
  EXPECT_THAT(run({kTable}, [](auto x) { return matmul(ones({2}, DType::f64), x[0]); }).elements(),
              ElementsAre(5, 7, 9));
  EXPECT_THAT(run({kRow}, [](auto x) { return dot(x[0], x[0]); }).elements(), ElementsAre(14));
  EXPECT_THAT(run({kTable}, [](auto x) { return dot_general(x[0], x[0], {{-1}, {1}, {0}, {0}}); }).elements(),
              ElementsAre(14, 77));
}

TEST(TracedFunctions, Shapes) {
  const auto shape = [](const Tensor& tensor, auto function) {
    return run({tensor}, [&](auto x) { return function(x[0]); });
  };
  EXPECT_THAT(shape(kTable, [](auto x) { return transpose(x); }).elements(), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_EQ(shape(kTable, [](auto x) { return transpose(x, {-1, 0}); }).value.shape(), (Shape{3, 2}));
  EXPECT_EQ(shape(kTable, [](auto x) { return reshape(x, {3, 2}); }).value.shape(), (Shape{3, 2}));
  EXPECT_THAT(shape(kRow, [](auto x) { return broadcast_in_dim(x, {3, 2}, {0}); }).elements(),
              ElementsAre(1, 1, 2, 2, 3, 3));
  EXPECT_THAT(shape(kRow, [](auto x) { return broadcast_to(x, {2, 3}); }).elements(),
              ElementsAre(1, 2, 3, 1, 2, 3));
  EXPECT_THAT(shape(kTable, [](auto x) { return slice(x, {0, 1}, {2, 3}); }).elements(),
              ElementsAre(2, 3, 5, 6));
  EXPECT_THAT(shape(kRow, [](auto x) { return slice(x, {0}, {3}, {2}); }).elements(), ElementsAre(1, 3));
  EXPECT_THAT(shape(kRow, [](auto x) { return pad(x, 0.5, {1}, {-1}); }).elements(), ElementsAre(0.5, 1, 2));
  EXPECT_THAT(shape(kRow, [](auto x) { return pad(x, sum(x), {0}, {0}, {1}); }).elements(),
              ElementsAre(1, 6, 2, 6, 3));
  EXPECT_THAT(shape(kRow, [](auto x) { return concatenate({x, x}, -1); }).elements(),
              ElementsAre(1, 2, 3, 1, 2, 3));
}

TEST(TracedFunctions, Reductions) {
  const auto reduce = [](auto function) { return run({kTable}, [&](auto x) { return function(x[0]); }); };
  EXPECT_THAT(reduce([](auto x) { return sum(x); }).elements(), ElementsAre(21));
  EXPECT_THAT(reduce([](auto x) { return sum(x, {-1}); }).elements(), ElementsAre(6, 15));
  EXPECT_THAT(reduce([](auto x) { return sum(x, {1, 0}); }).elements(), ElementsAre(21));
  EXPECT_THAT(reduce([](auto x) { return mean(x, {1}); }).elements(), ElementsAre(2, 5));
  EXPECT_THAT(reduce([](auto x) { return mean(x); }).ops(), ElementsAre("reduce_sum", "div"));
  EXPECT_THAT(reduce([](auto x) { return reduce_max(x, {0}); }).elements(), ElementsAre(4, 5, 6));
  EXPECT_THAT(reduce([](auto x) { return reduce_max(x); }).elements(), ElementsAre(6));
  EXPECT_THAT(reduce([](auto x) { return reduce_min(x, {0}); }).elements(), ElementsAre(1, 2, 3));
  EXPECT_THAT(reduce([](auto x) { return reduce_min(x); }).elements(), ElementsAre(1));
}

TEST(TracedFunctions, ConstantsAndConversion) {
  const auto make = [](auto function) { return run({kRow}, [&](auto) { return function(); }); };
  const Result scalar = make([] { return full({}, 2.5, DType::f32); });
  EXPECT_TRUE(scalar.ops().empty());
  EXPECT_EQ(scalar.value, Tensor::scalar(2.5f));
  EXPECT_THAT(make([] { return zeros({2}, DType::f64); }).ops(), ElementsAre("broadcast_in_dim"));
  EXPECT_THAT(make([] { return zeros({2}, DType::f64); }).elements(), ElementsAre(0, 0));
  EXPECT_THAT(make([] { return ones({2}, DType::i32); }).elements(), ElementsAre(1, 1));
  EXPECT_EQ(make([] { return iota({3}, 0, DType::i64); }).value, Tensor::of<std::int64_t>({3}, {0, 1, 2}));
  EXPECT_EQ(make([] { return constant(kTable); }).value, kTable);
  const Result same = run({kRow}, [](auto x) { return convert(x[0], DType::f64); });
  EXPECT_THAT(same.ops(), ElementsAre("convert_element_type"));
  EXPECT_EQ(run({kRow}, [](auto x) { return convert(x[0], DType::i32); }).value,
            Tensor::of<std::int32_t>({3}, {1, 2, 3}));
}

TEST(TracedFunctions, TypesOfTracedValues) {
  run({kTable}, [](auto x) {
    EXPECT_EQ(x[0].type(), kTable.type());
    EXPECT_EQ(x[0].shape(), (Shape{2, 3}));
    EXPECT_EQ(x[0].dtype(), DType::f64);
    EXPECT_EQ(x[0].rank(), 2);
    EXPECT_EQ((x[0] < 1).dtype(), DType::boolean);
    return x[0];
  });
}

}  // namespace
}  // namespace loipe
