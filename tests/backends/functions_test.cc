// SPDX-License-Identifier: Apache-2.0
// The vectorised functions: errors in units in the last place against higher
// precision, and what IEEE 754 says about special arguments.
#include <limits>

#include "backends/backend_testing.h"

namespace loipe {
namespace {

class Functions : public testing::TestWithParam<std::string> {
 protected:
  ForcedSimd simd_{GetParam()};

  template <class T>
  std::vector<T> apply(const std::string& op, const std::vector<T>& x) {
    Builder b;
    const Value argument = b.argument("x", {dtype_of<T>(), {static_cast<std::int64_t>(x.size())}});
    const Program program = b.finish({b.emit(op, {argument})});
    const Tensor result = find_backend("jit").compile(program)->run(
        {{Tensor::of<T>({static_cast<std::int64_t>(x.size())}, x)}})[0];
    return {result.elements<T>().begin(), result.elements<T>().end()};
  }
};
INSTANTIATE_TEST_SUITE_P(Simd, Functions, testing::ValuesIn(simd_levels()),
                         [](const auto& level) { return level.param; });

/// One vectorised function, its range of arguments in f64 (cut to what f32 holds), and
/// the bound of its error.
struct Function {
  std::string op;
  long double (*exact)(long double);
  double low, high;
  double units;
};

const Function kFunctions[] = {
    {"exp", [](long double x) { return std::exp(x); }, -700, 709, 1.1},
    {"exp", [](long double x) { return std::exp(x); }, -1, 1, 1.1},
    {"expm1", [](long double x) { return std::expm1(x); }, -40, 700, 2.0},
    {"expm1", [](long double x) { return std::expm1(x); }, -1, 1, 2.0},
    {"log", [](long double x) { return std::log(x); }, 1e-300, 4, 1.5},
    {"log", [](long double x) { return std::log(x); }, 0.5, 2, 1.5},
    {"log", [](long double x) { return std::log(x); }, 1e-300, 1e300, 1.5},
    {"tanh", [](long double x) { return std::tanh(x); }, -25, 25, 3.0},
    {"tanh", [](long double x) { return std::tanh(x); }, -1e-3, 1e-3, 3.0},
    {"logistic", [](long double x) { return 1 / (1 + std::exp(-x)); }, -40, 40, 3.0},
};

/// |actual - exact| in units of the last place of the exact result.
template <class T>
double units_off(T actual, long double exact) {
  const T rounded = static_cast<T>(exact);
  const T unit = std::nextafter(std::abs(rounded), std::numeric_limits<T>::infinity()) - std::abs(rounded);
  return static_cast<double>(std::abs(static_cast<long double>(actual) - exact) /
                             static_cast<long double>(unit));
}

template <class T>
std::vector<T> arguments_of(const Function& function, Rng& rng) {
  const double range = std::is_same_v<T, float> ? 85 : 1e308,
               most = std::is_same_v<T, float> && function.op == "log" ? 1e38 : range;
  const double low =
      std::max(function.low, function.op == "log" && std::is_same_v<T, float> ? 1e-38 : -range);
  const double high = std::min(function.high, most);
  std::vector<T> x;
  for (int i = 0; i < 30011; ++i) x.push_back(static_cast<T>(rng.uniform(low, high)));
  return x;
}

TEST_P(Functions, ErrorsStayWithinTheStatedBounds) {
  Rng rng(3);
  for (const Function& function : kFunctions) {
    const auto check = [&]<class T>(T) {
      const std::vector<T> x = arguments_of<T>(function, rng), y = apply<T>(function.op, x);
      double worst = 0;
      T where = 0;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (const double off = units_off(y[i], function.exact(static_cast<long double>(x[i]))); off > worst) {
          worst = off;
          where = x[i];
        }
      EXPECT_LE(worst, function.units) << function.op << " at " << where << ", " << sizeof(T) * 8 << " bits";
    };
    check(float{});
    check(double{});
  }
}

TEST_P(Functions, SpecialArguments) {
  const auto check = [&]<class T>(T) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity(), kNan = std::numeric_limits<T>::quiet_NaN();
    constexpr T kSmallest = std::numeric_limits<T>::denorm_min(), kLargest = std::numeric_limits<T>::max();
    const std::vector<T> x{0,         T(-0.0),    1,        -1,        kInfinity, -kInfinity, kNan,
                           kSmallest, -kSmallest, kLargest, -kLargest, T(1e-20),  100,        -100};
    for (const std::string op : {"exp", "expm1", "log", "tanh", "logistic", "abs", "sign", "sqrt", "neg"}) {
      Builder b;
      const Value argument = b.argument("x", {dtype_of<T>(), {static_cast<std::int64_t>(x.size())}});
      const Tensor expected = evaluate(b.finish({b.emit(op, {argument})}),
                                       {{Tensor::of<T>({static_cast<std::int64_t>(x.size())}, x)}})[0];
      const std::vector<T> actual = apply<T>(op, x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const T e = expected.elements<T>()[i];
        const bool agrees = std::isnan(e) ? std::isnan(actual[i])
                            : std::isinf(e) || e == 0
                                ? actual[i] == e && std::signbit(actual[i]) == std::signbit(e)
                                : units_off(actual[i], static_cast<long double>(e)) <= 4;
        EXPECT_TRUE(agrees) << op << "(" << x[i] << ") = " << actual[i] << ", expected " << e << ", "
                            << sizeof(T) * 8 << " bits";
      }
    }
  };
  check(float{});
  check(double{});
}

}  // namespace
}  // namespace loipe
