// SPDX-License-Identifier: Apache-2.0
// Rules that a reference implementation has wrong, and what elimination must not cost.
#include <complex>
#include <map>
#include <set>

#include "base/rng.h"
#include "every_way.h"
#include "graph/eliminate.h"
#include "graph/linearize.h"
#include "ir/op_def.h"

namespace loipe::testing {
namespace {

using Complex = std::complex<double>;
using Arguments = std::span<const Traced>;

/// The unary ops as functions of a complex number: f(x + ih) = f(x) + ih f'(x) + O(h^2), so that
/// the imaginary part gives the derivative without a difference.
const std::map<std::string_view, Complex (*)(Complex)> kComplexFunctions{
    {"acos", [](Complex x) { return std::acos(x); }},
    {"acosh", [](Complex x) { return std::acosh(x); }},
    {"asin", [](Complex x) { return std::asin(x); }},
    {"asinh", [](Complex x) { return std::asinh(x); }},
    {"atan", [](Complex x) { return std::atan(x); }},
    {"atanh", [](Complex x) { return std::atanh(x); }},
    {"cbrt", [](Complex x) { return std::pow(x, 1.0 / 3); }},
    {"cos", [](Complex x) { return std::cos(x); }},
    {"cosh", [](Complex x) { return std::cosh(x); }},
    {"exp", [](Complex x) { return std::exp(x); }},
    {"exp2", [](Complex x) { return std::exp(x * std::log(2.0)); }},
    {"expm1", [](Complex x) { return std::exp(x) - 1.0; }},
    {"log", [](Complex x) { return std::log(x); }},
    {"log1p", [](Complex x) { return std::log(1.0 + x); }},
    {"logistic", [](Complex x) { return 1.0 / (1.0 + std::exp(-x)); }},
    {"neg", [](Complex x) { return -x; }},
    {"relu", [](Complex x) { return x.real() > 0 ? x : 0.0; }},
    {"rsqrt", [](Complex x) { return 1.0 / std::sqrt(x); }},
    {"silu", [](Complex x) { return x / (1.0 + std::exp(-x)); }},
    {"sin", [](Complex x) { return std::sin(x); }},
    {"sinh", [](Complex x) { return std::sinh(x); }},
    {"softplus", [](Complex x) { return std::log(1.0 + std::exp(x)); }},
    {"sqrt", [](Complex x) { return std::sqrt(x); }},
    {"tan", [](Complex x) { return std::tan(x); }},
    {"tanh", [](Complex x) { return std::tanh(x); }},
};

/// No complex library function, or none that is analytic; the conformance test has these.
const std::set<std::string_view> kNotAnalytic{"abs",   "ceil",  "erf",  "erfc",
                                              "floor", "round", "sign", "stop_gradient"};

bool is_unary_function(const OpDef& op) {
  if (op.arity.value.minimum != 1 || op.arity.value.maximum != 1 || !op.jacobian.value.rule) return false;
  Rng rng(1);
  for (const Sample& sample : op.samples.value(rng))
    if (sample.operands[0].shape().empty() && sample.attributes.empty() &&
        is_floating(sample.operands[0].dtype()))
      return true;
  return false;
}

/// 20 points where the function is real and smooth.
double point_of(std::string_view name, int i) {
  const double unit = (i + 0.5) / 20;
  if (name == "acosh") return 1.1 + 2 * unit;
  static const std::set<std::string_view> positive{"cbrt", "log", "log1p", "rsqrt", "sqrt"};
  if (positive.contains(name)) return 0.1 + 3 * unit;
  static const std::set<std::string_view> within_one{"acos", "asin", "atanh"};
  if (within_one.contains(name)) return 0.95 * (2 * unit - 1);
  return 3 * (2 * unit - 1) / 2.1;
}

TEST(Users, U89_EveryUnaryRuleAgainstTheComplexStep) {
  for (const OpDef* op : all_ops()) {
    if (!is_unary_function(*op)) continue;
    const std::string_view name = op->name;
    if (kNotAnalytic.contains(name)) continue;
    const auto function = kComplexFunctions.find(name);
    ASSERT_NE(function, kComplexFunctions.end()) << "no complex function for op " << name;
    Builder builder;
    const Program program = [&] {
      const Value x = builder.argument("x", {DType::f64, {}});
      const Value y = builder.emit(*op, {x});
      return builder.finish({y});
    }();
    const Program jacobian = accumulate(program, {{0}, reverse_order(program), {}}).program;
    const auto executable = find_backend("reference").compile(jacobian);
    for (int i = 0; i < 20; ++i) {
      const double x = point_of(name, i), step = 1e-30;
      const double expected = function->second(Complex(x, step)).imag() / step;
      const Tensor argument[] = {Tensor::scalar(x)};
      EXPECT_NEAR(executable->run(argument)[1].at(0), expected, 1e-13 * std::max(1.0, std::abs(expected)))
          << name << " at " << x;
    }
  }
  check_in_every_way([](Arguments x) { return asinh(x[0]); }, {Tensor::scalar(1.0)},
                     [](const Derivatives& d) { expect_entries(d.by[0], {0.70710678}, 1e-8); });
}

/// What eliminating the middle one of three vertices adds to the program.
struct EliminationOfTheMiddle {
  std::int64_t multiplications = 0, additions = 0, bytes_written = 0;

  explicit EliminationOfTheMiddle(const std::function<Traced(const Traced&)>& middle) {
    const Tensor x(TensorType{DType::f64, {4, 4}});
    const Program program = traced([&](Arguments v) { return sin(middle(sin(v[0]))); }, {x});
    Builder builder(program);
    Recorder recorder(builder);
    CompGraph graph = linearize(recorder, program, {0});
    const std::size_t before = builder.program().size();
    const ActualCost cost = recorder.cost();
    Elimination elimination(recorder, program, std::move(graph));
    for (VertexId v : elimination.graph().intermediates())
      if (elimination.graph().vertex(v).number == 2) elimination.eliminate_vertex(v);
    multiplications = recorder.cost().multiplications - cost.multiplications;
    additions = recorder.cost().additions - cost.additions;
    for (std::size_t i = before; i < builder.program().size(); ++i) {
      const Value node{static_cast<std::uint32_t>(i)};
      const std::string_view op = builder.program().op(node).name;
      // Axes laid out anew are another view of the same memory.
      if (op != "reshape" && op != "transpose" && op != "gather")
        bytes_written += static_cast<std::int64_t>(builder.type(node).byte_size());
    }
  }
};

TEST(Users, U92_WhatOnlyMovesOrAddsCostsNothing) {
  const std::function<Traced(const Traced&)> middles[] = {
      [](const Traced& x) { return x + constant(Tensor(TensorType{DType::f64, {4, 4}})); },
      [](const Traced& x) { return constant(Tensor(TensorType{DType::f64, {4, 4}})) - x; },
      [](const Traced& x) { return -x; },
      [](const Traced& x) { return reshape(x, {16}); },
      [](const Traced& x) { return reshape(x, {2, 2, 4}); },
      [](const Traced& x) { return transpose(x); },
      [](const Traced& x) { return reverse(x, {0}); },
      [](const Traced& x) { return slice(x, {1, 0}, {3, 4}); },
  };
  for (std::size_t i = 0; i < std::size(middles); ++i) {
    const EliminationOfTheMiddle added(middles[i]);
    // Without the vertex, one diagonal is multiplied by none: only the two sines remain, which
    // are multiplied when the first of them is eliminated.
    EXPECT_EQ(added.multiplications, 0) << "middle " << i;
    EXPECT_EQ(added.additions, 0) << "middle " << i;
    EXPECT_EQ(added.bytes_written, 0) << "middle " << i;
  }
}

}  // namespace
}  // namespace loipe::testing
