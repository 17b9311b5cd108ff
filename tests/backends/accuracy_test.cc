// SPDX-License-Identifier: Apache-2.0
// The bounds that docs/guides/accuracy.md states, in units in the last place: measured
// on a grid against long double, for every width of vectors, by compiled kernels and
// by blocks.
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <sstream>

#include "backends/backend_testing.h"

namespace loipe {
namespace {

constexpr std::int64_t kPoints = 60'000;
using Exact = std::function<long double(long double, long double)>;

/// A function with the arguments of its grid: lowest and highest for f32 and for f64,
/// evenly spaced or, for `logarithmic`, in magnitude, then with both signs unless low > 0.
struct Function {
  std::string op;
  Exact exact;
  double low[2], high[2];
  bool logarithmic = false;
};

#define LOIPE_EXACT(expression) \
  [](long double x, [[maybe_unused]] long double y) -> long double { return expression; }

const Function kFunctions[] = {
    {"exp", LOIPE_EXACT(std::exp(x)), {-87, -708}, {88, 709}},
    {"exp", LOIPE_EXACT(std::exp(x)), {-1, -1}, {1, 1}},
    {"exp2", LOIPE_EXACT(std::exp2(x)), {-126, -1022}, {127, 1023}},
    {"expm1", LOIPE_EXACT(std::expm1(x)), {-30, -50}, {88, 709}},
    {"expm1", LOIPE_EXACT(std::expm1(x)), {1e-20, 1e-100}, {1, 1}, true},
    {"log", LOIPE_EXACT(std::log(x)), {1e-37, 1e-300}, {1e38, 1e300}, true},
    {"log", LOIPE_EXACT(std::log(x)), {0.5, 0.5}, {2, 2}},
    {"log1p", LOIPE_EXACT(std::log1p(x)), {-0.999, -0.999}, {4, 4}},
    {"log1p", LOIPE_EXACT(std::log1p(x)), {1e-20, 1e-100}, {1e30, 1e100}, true},
    {"sqrt", LOIPE_EXACT(std::sqrt(x)), {1e-37, 1e-300}, {1e38, 1e300}, true},
    {"rsqrt", LOIPE_EXACT(1 / std::sqrt(x)), {1e-37, 1e-300}, {1e38, 1e300}, true},
    {"cbrt", LOIPE_EXACT(std::cbrt(x)), {1e-37, 1e-300}, {1e38, 1e300}, true},
    {"logistic", LOIPE_EXACT(1 / (1 + std::exp(-x))), {-87, -700}, {87, 700}},
    {"sin", LOIPE_EXACT(std::sin(x)), {-1000, -1000}, {1000, 1000}},
    {"cos", LOIPE_EXACT(std::cos(x)), {-1000, -1000}, {1000, 1000}},
    {"tan", LOIPE_EXACT(std::tan(x)), {-1000, -1000}, {1000, 1000}},
    {"asin", LOIPE_EXACT(std::asin(x)), {-1, -1}, {1, 1}},
    {"acos", LOIPE_EXACT(std::acos(x)), {-1, -1}, {1, 1}},
    {"atan", LOIPE_EXACT(std::atan(x)), {-50, -50}, {50, 50}},
    {"sinh", LOIPE_EXACT(std::sinh(x)), {-88, -709}, {88, 709}},
    {"sinh", LOIPE_EXACT(std::sinh(x)), {-1, -1}, {1, 1}},
    {"cosh", LOIPE_EXACT(std::cosh(x)), {-88, -709}, {88, 709}},
    {"tanh", LOIPE_EXACT(std::tanh(x)), {-20, -25}, {20, 25}},
    {"tanh", LOIPE_EXACT(std::tanh(x)), {1e-20, 1e-100}, {1, 1}, true},
    {"asinh", LOIPE_EXACT(std::asinh(x)), {1e-20, 1e-100}, {1e30, 1e100}, true},
    {"acosh", LOIPE_EXACT(std::acosh(x)), {1, 1}, {100, 100}},
    {"atanh", LOIPE_EXACT(std::atanh(x)), {-0.9999, -0.9999}, {0.9999, 0.9999}},
    {"erf", LOIPE_EXACT(std::erf(x)), {-4, -6}, {4, 6}},
    {"erfc", LOIPE_EXACT(std::erfc(x)), {-4, -6}, {9, 26}},
    {"pow", LOIPE_EXACT(std::pow(x, y)), {1e-3, 1e-3}, {1e3, 1e3}, true},
    {"atan2", LOIPE_EXACT(std::atan2(x, y)), {-50, -50}, {50, 50}},
};

/// The bounds of one row of the table: f32 and f64.
std::map<std::string, std::array<double, 2>> stated_bounds() {
  std::ifstream file(LOIPE_SOURCE_DIR "/docs/guides/accuracy.md");
  std::map<std::string, std::array<double, 2>> bounds;
  for (std::string line; std::getline(file, line);) {
    std::istringstream row(line);
    std::string bar, op, other;
    std::array<double, 2> numbers{};
    if (row >> bar >> op >> other >> numbers[0] >> other >> numbers[1] && bar == "|") bounds[op] = numbers;
  }
  return bounds;
}

template <class T>
std::vector<T> grid(const Function& function) {
  const std::size_t precision = std::is_same_v<T, float> ? 0 : 1;
  const double low = function.low[precision], high = function.high[precision];
  const bool is_signed = function.logarithmic && function.op != "log" && function.op != "pow" &&
                         function.op.find("sqrt") == std::string::npos && function.op != "log1p";
  std::vector<T> points;
  for (std::int64_t i = 0; i < kPoints; ++i) {
    const double t = static_cast<double>(i) / static_cast<double>(kPoints - 1);
    const double x = function.logarithmic ? std::exp(std::log(low) + t * (std::log(high) - std::log(low)))
                                          : low + t * (high - low);
    points.push_back(static_cast<T>(is_signed && i % 2 ? -x : std::clamp(x, low, high)));
  }
  return points;
}

template <class T>
double units_off(T actual, long double exact) {
  const T rounded = static_cast<T>(exact);
  const T unit = std::nextafter(std::abs(rounded), std::numeric_limits<T>::infinity()) - std::abs(rounded);
  return static_cast<double>(std::abs(static_cast<long double>(actual) - exact) /
                             static_cast<long double>(unit));
}

/// The largest error on the grid.
template <class T>
double worst_error(const Function& function, const DisabledPasses& disabled) {
  const std::vector<T> x = grid<T>(function);
  std::vector<T> y;
  Rng rng(4);
  for (std::int64_t i = 0; i < kPoints; ++i) y.push_back(static_cast<T>(rng.uniform(-10, 10)));
  const bool has_two = function.op == "pow" || function.op == "atan2";
  Builder b;
  const TensorType type{dtype_of<T>(), {kPoints}};
  std::vector<Value> operands{b.argument("x", type)};
  std::vector<Tensor> arguments{Tensor::of<T>({kPoints}, x)};
  if (has_two) {
    operands.push_back(b.argument("y", type));
    arguments.push_back(Tensor::of<T>({kPoints}, y));
  }
  const Program program = b.finish({b.emit(find_op(function.op), operands, {})});
  const Tensor result = find_backend("jit").compile(program, {.disabled = disabled})->run(arguments)[0];
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = function.exact(static_cast<long double>(x[i]), static_cast<long double>(y[i]));
    if (std::abs(exact) < static_cast<long double>(std::numeric_limits<T>::min())) continue;
    worst = std::max(worst, units_off(result.elements<T>()[i], exact));
  }
  return worst;
}

class Accuracy : public testing::TestWithParam<std::string> {
 protected:
  ForcedSimd simd_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Simd, Accuracy, testing::ValuesIn(simd_levels()),
                         [](const auto& level) { return level.param; });

TEST_P(Accuracy, StatedBoundsHold) {
  const auto bounds = stated_bounds();
  DisabledPasses no_kernels;
  no_kernels.add(BackendPass::kernels);
  for (const DisabledPasses& disabled : {DisabledPasses(), no_kernels}) {
    SCOPED_TRACE(disabled.contains(BackendPass::kernels) ? "in blocks" : "compiled");
    for (const Function& function : kFunctions) {
      const auto stated = bounds.find(function.op);
      ASSERT_NE(stated, bounds.end()) << function.op << " has no stated bound";
      EXPECT_LE(worst_error<float>(function, disabled), stated->second[0]) << function.op << ", f32";
      EXPECT_LE(worst_error<double>(function, disabled), stated->second[1]) << function.op << ", f64";
    }
  }
}

/// Special arguments in a loop that is long enough to be compiled.
template <class T>
void expect_special_results(const std::string& op) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const std::vector<T> special{0,         T(-0.0),    1,
                               -1,        kInfinity,  -kInfinity,
                               100,       -100,       std::numeric_limits<T>::quiet_NaN(),
                               T(1e30),   T(-1e30),   std::numeric_limits<T>::denorm_min(),
                               T(1e-20),  T(-1e-20),  -std::numeric_limits<T>::denorm_min(),
                               T(0.5),    T(-0.5),    std::numeric_limits<T>::max(),
                               T(1e-310), T(-1e-310), -std::numeric_limits<T>::max()};
  const auto count = static_cast<std::int64_t>(special.size() * 1001);
  std::vector<T> x;
  for (std::int64_t i = 0; i < count; ++i) x.push_back(special[static_cast<std::size_t>(i) % special.size()]);
  Builder b;
  const Value argument = b.argument("x", {dtype_of<T>(), {count}});
  const Program program = b.finish({b.emit(op, {argument})});
  const std::vector<Tensor> arguments{Tensor::of<T>({count}, x)};
  const Tensor expected = evaluate(program, arguments)[0],
               actual = find_backend("jit").compile(program)->run(arguments)[0];
  for (std::size_t i = 0; i < special.size(); ++i) {
    const T e = expected.elements<T>()[i], a = actual.elements<T>()[i];
    const bool agrees = std::isnan(e)             ? std::isnan(a)
                        : std::isinf(e) || e == 0 ? a == e && std::signbit(a) == std::signbit(e)
                                                  : units_off(a, static_cast<long double>(e)) <= 5;
    EXPECT_TRUE(agrees) << op << "(" << special[i] << ") = " << a << ", expected " << e << ", "
                        << sizeof(T) * 8 << " bits";
  }
}

TEST_P(Accuracy, SpecialArgumentsOfCompiledKernels) {
  for (const auto& [op, bounds] : stated_bounds()) {
    if (op == "pow" || op == "atan2") continue;
    expect_special_results<float>(op);
    expect_special_results<double>(op);
  }
}

}  // namespace
}  // namespace loipe
