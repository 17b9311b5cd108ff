// SPDX-License-Identifier: Apache-2.0
// Activation functions. Where a formula would be 0 times infinity far from the origin,
// the limit is selected: see docs/theory/ops.md.
#include <limits>

#include "ops/elementwise/family.h"

namespace loipe::ops {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Sample> at_zero_and_infinities(Rng&) {
  return {scalar_sample({0.0}), scalar_sample({-kInfinity}), scalar_sample({kInfinity})};
}

constexpr auto logistic_of = []<class T>(T x) -> T { return 1 / (1 + std::exp(-x)); };

/// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|): neither overflows nor cancels.
constexpr auto softplus_of = []<class T>(T x) -> T {
  return (x > 0 ? x : x < 0 ? T{0} : x) + std::log1p(std::exp(-std::abs(x)));
};

Value expand_softplus(const ExpandContext& c) {
  Builder& b = c.builder;
  const Value x = c.operands[0];
  return add(b, max(b, x, b.scalar(0, b.type(x).dtype)), log1p(b, exp(b, neg(b, abs(b, x)))));
}

/// 0 at -inf, where s is 0.
constexpr auto silu_of = []<class T>(T x) -> T {
  const T s = logistic_of(x);
  return s == 0 ? T{0} : x * s;
};

/// s + x s (1 - s); where s (1 - s) has become 0, x may be infinite and s is the limit.
LocalJacobian silu_jacobian(JacobianContext& c) {
  Builder& b = c.builder;
  const Value s = logistic(b, c.operand()), slope = mul(b, s, sub(b, 1, s));
  const Value tail = select(b, eq(b, slope, 0), 0, mul(b, c.operand(), slope));
  return diagonal(c, add(b, s, tail));
}

Value expand_silu(const ExpandContext& c) {
  Builder& b = c.builder;
  const Value s = logistic(b, c.operands[0]);
  return select(b, eq(b, s, 0), 0, mul(b, c.operands[0], s));
}

/// NaN stays.
constexpr auto relu_of = []<class T>(T x) -> T { return x <= 0 ? T{0} : x; };

Value expand_relu(const ExpandContext& c) {
  Builder& b = c.builder;
  const Value zero = b.scalar(0, b.type(c.operands[0]).dtype);
  return select(b, le(b, c.operands[0], zero), zero, c.operands[0]);
}

template <const char* name>
TensorType infer_with_number(const InferContext& c) {
  const TensorType type = infer_floating_with(c, {name});
  c.attributes.number(name);
  return type;
}

constexpr char kSlope[] = "slope", kAlpha[] = "alpha";

template <const char* name, double number>
std::vector<Sample> samples_with_number(Rng& rng) {
  const DType dtypes[] = {DType::f64};
  const Draw draws[] = {away_from_zero<0.5, 2.0>};
  return elementwise_samples(rng, dtypes, draws, {{name, number}});
}

Tensor evaluate_leaky_relu(const EvaluateContext& c) {
  const double slope = c.attributes.number(kSlope);
  return map_floating(c, [&]<class T>(T x) { return x > 0 ? x : static_cast<T>(slope) * x; });
}

LocalJacobian leaky_relu_jacobian(JacobianContext& c) {
  Builder& b = c.builder;
  const Value slope = b.scalar(c.attributes().number(kSlope), c.dtype());
  return diagonal(c, select(b, gt(b, c.operand(), 0), 1, slope));
}

Value expand_leaky_relu(const ExpandContext& c) {
  Builder& b = c.builder;
  const Value x = c.operands[0];
  return select(b, gt(b, x, 0), x, mul(b, c.attributes.number(kSlope), x));
}

Tensor evaluate_elu(const EvaluateContext& c) {
  const double alpha = c.attributes.number(kAlpha);
  return map_floating(c, [&]<class T>(T x) { return x > 0 ? x : static_cast<T>(alpha) * std::expm1(x); });
}

/// 1, or alpha e^x, which is the value plus alpha.
LocalJacobian elu_jacobian(JacobianContext& c) {
  Builder& b = c.builder;
  const Value left = add(b, c.node, c.attributes().number(kAlpha));
  return diagonal(c, select(b, gt(b, c.operand(), 0), 1, left));
}

Value expand_elu(const ExpandContext& c) {
  Builder& b = c.builder;
  const Value x = c.operands[0];
  return select(b, gt(b, x, 0), x, mul(b, c.attributes.number(kAlpha), expm1(b, x)));
}

}  // namespace

constinit const OpDef op_softplus{
    .name = "softplus",
    .summary = "log(1 + e to the power x)",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<softplus_of>,
    .jacobian = [](JacobianContext& c) { return diagonal(c, logistic(c.builder, c.operand())); },
    .cost =
        [](const CostContext& c) {
          const std::int64_t count = c.type.element_count();
          return OpCost{.additions = 2 * count, .functions = 2 * count};
        },
    .samples = floating_samples<away_from_zero<0.5, 2.0>>,
    .tolerance = Tolerance::function,
    .special_points = at_zero_and_infinities,
    .jax_name = "softplus",
    .onnx_name = "Softplus",
    .expand = expand_softplus,
};

constinit const OpDef op_silu{
    .name = "silu",
    .summary = "x times logistic(x), also called swish",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<silu_of>,
    .jacobian = silu_jacobian,
    .cost =
        [](const CostContext& c) {
          const std::int64_t count = c.type.element_count();
          return OpCost{.multiplications = count, .additions = count, .divisions = count, .functions = count};
        },
    .samples = floating_samples<between<-2.0, 2.0>>,
    .tolerance = Tolerance::function,
    .special_points = at_zero_and_infinities,
    .jax_name = "silu",
    .onnx_name = "Swish",
    .expand = expand_silu,
};

constinit const OpDef op_relu{
    .name = "relu",
    .summary = "x where it is positive, else 0",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<relu_of>,
    .jacobian =
        [](JacobianContext& c) {
          return diagonal(c, Partial(1).where(gt(c.builder, c.operand(), 0), MaskKind::soft));
        },
    .cost = cost_free,
    .samples = floating_samples<away_from_zero<0.5, 2.0>>,
    .tolerance = Tolerance::exact,
    .special_points = at_zero_and_infinities,
    .jax_name = "relu",
    .onnx_name = "Relu",
    .expand = expand_relu,
};

constinit const OpDef op_leaky_relu{
    .name = "leaky_relu",
    .summary = "x where it is positive, else slope times x",
    .arity = kUnary,
    .infer = infer_with_number<kSlope>,
    .evaluate = evaluate_leaky_relu,
    .jacobian = leaky_relu_jacobian,
    .cost = cost_multiplications,
    .samples = samples_with_number<kSlope, 0.25>,
    .tolerance = Tolerance::exact,
    .special_points = [](Rng&) { return std::vector{scalar_sample({0.0}, {{kSlope, 0.25}})}; },
    .jax_name = "leaky_relu",
    .onnx_name = "LeakyRelu",
    .expand = expand_leaky_relu,
};

constinit const OpDef op_elu{
    .name = "elu",
    .summary = "x where it is positive, else alpha times (e to the power x, minus 1)",
    .arity = kUnary,
    .infer = infer_with_number<kAlpha>,
    .evaluate = evaluate_elu,
    .jacobian = elu_jacobian,
    .cost =
        [](const CostContext& c) {
          const std::int64_t count = c.type.element_count();
          return OpCost{.multiplications = count, .functions = count};
        },
    .samples = samples_with_number<kAlpha, 1.5>,
    .tolerance = Tolerance::function,
    .special_points = [](Rng&) { return std::vector{scalar_sample({0.0}, {{kAlpha, 1.5}})}; },
    .jax_name = "elu",
    .onnx_name = "Elu",
    .expand = expand_elu,
};

}  // namespace loipe::ops
