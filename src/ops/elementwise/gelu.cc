// SPDX-License-Identifier: Apache-2.0
// gelu(x) = x P(x), with P the normal distribution function or its approximation by tanh.
#include <limits>
#include <numbers>

#include "ops/elementwise/family.h"

namespace loipe::ops {

namespace {

/// P(x) = (1 + tanh u)/2 = logistic(2u), u = sqrt(2/pi) (x + 0.044715 x^3). Written
/// 2u = kRate x (1 + kCubic x^2).
constexpr double kCubic = 0.044715;
const double kRate = 2 * std::sqrt(2 * std::numbers::inv_pi);

bool is_tanh_form(const Attributes& attributes) { return attributes.text("form") == "tanh"; }

TensorType infer_gelu(const InferContext& c) {
  const TensorType type = infer_floating_with(c, {"form"});
  const std::string& form = c.attributes.text("form");
  if (form != "erf" && form != "tanh")
    throw UserError("form is \"" + form + "\", expected \"erf\" (exact) or \"tanh\" (approximate)");
  return type;
}

template <class T>
T normal_distribution(T x) {
  return T{0.5} * std::erfc(-x * std::numbers::sqrt2_v<T> / 2);
}

template <class T>
T tanh_distribution(T x) {
  return 1 / (1 + std::exp(-static_cast<T>(kRate) * x * (1 + static_cast<T>(kCubic) * x * x)));
}

Tensor evaluate_gelu(const EvaluateContext& c) {
  const bool is_tanh = is_tanh_form(c.attributes);
  return map_floating(c, [&]<class T>(T x) {
    const T p = is_tanh ? tanh_distribution(x) : normal_distribution(x);
    return p == 0 ? T{0} : x * p;  // 0 at -inf
  });
}

/// 1 + factor x^2
Value parabola(Builder& b, double factor, Value x) { return add(b, mul(b, factor, mul(b, x, x)), 1); }

Value distribution(Builder& b, Value x, bool is_tanh) {
  if (is_tanh) return logistic(b, mul(b, mul(b, kRate, x), parabola(b, kCubic, x)));
  return mul(b, 0.5, erfc(b, mul(b, -std::numbers::sqrt2 / 2, x)));
}

/// P + x p, with the density p = P'. Where p has become 0, x may be infinite and P is the limit.
LocalJacobian gelu_jacobian(JacobianContext& c) {
  Builder& b = c.builder;
  const Value x = c.operand();
  const bool is_tanh = is_tanh_form(c.attributes());
  const Value p = distribution(b, x, is_tanh);
  // exp(-x^2/2) / sqrt(2 pi), or P (1 - P), the derivative of logistic by 2u, which is the
  // factor that vanishes, times d(2u)/dx.
  const Value density = is_tanh ? mul(b, p, sub(b, 1, p))
                                : mul(b, std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2,
                                      exp(b, mul(b, -0.5, mul(b, x, x))));
  Value moment = mul(b, x, density);
  if (is_tanh) moment = mul(b, moment, mul(b, kRate, parabola(b, 3 * kCubic, x)));
  return diagonal(c, add(b, p, select(b, eq(b, density, 0), 0, moment)));
}

Value expand_gelu(const ExpandContext& c) {
  Builder& b = c.builder;
  const Value p = distribution(b, c.operands[0], is_tanh_form(c.attributes));
  return select(b, eq(b, p, 0), 0, mul(b, c.operands[0], p));
}

OpCost cost_gelu(const CostContext& c) {
  const std::int64_t count = c.type.element_count();
  if (is_tanh_form(c.attributes))
    return {.multiplications = 5 * count, .additions = 2 * count, .divisions = count, .functions = count};
  return {.multiplications = 3 * count, .functions = count};
}

std::vector<Sample> gelu_samples(Rng& rng) {
  std::vector<Sample> samples;
  const DType dtypes[] = {DType::f64};
  const Draw draws[] = {between<-2.0, 2.0>};
  for (const char* form : {"erf", "tanh"})
    for (Sample& sample : elementwise_samples(rng, dtypes, draws, {{"form", std::string(form)}}))
      samples.push_back(std::move(sample));
  return samples;
}

std::vector<Sample> gelu_special_points(Rng&) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<Sample> samples;
  for (const char* form : {"erf", "tanh"})
    for (double x : {kInfinity, -kInfinity})
      samples.push_back(scalar_sample({x}, {{"form", std::string(form)}}));
  return samples;
}

}  // namespace

constinit const OpDef op_gelu{
    .name = "gelu",
    .summary = "x times the normal distribution function of x; form=\"erf\" is exact, \"tanh\" approximate",
    .arity = kUnary,
    .infer = infer_gelu,
    .evaluate = evaluate_gelu,
    .jacobian = gelu_jacobian,
    .cost = cost_gelu,
    .samples = gelu_samples,
    .tolerance = Tolerance::function,
    .special_points = gelu_special_points,
    .jax_name = "gelu",
    .onnx_name = "Gelu",
    .expand = expand_gelu,
};

}  // namespace loipe::ops
