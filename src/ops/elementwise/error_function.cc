// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "ops/elementwise/family.h"

namespace loipe::ops {

namespace {

/// 2/sqrt(pi), the slope of erf at 0.
constexpr double kSlope = 2.0 * std::numbers::inv_sqrtpi;

/// e to the power -x^2
Value bell(JacobianContext& c) {
  Builder& b = c.builder;
  return exp(b, neg(b, mul(b, c.operand(), c.operand())));
}

}  // namespace

constinit const OpDef op_erf{
    .name = "erf",
    .summary = "error function, 2/sqrt(pi) times the integral of e to the power -t^2 from 0 to x",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::erf(x); }>,
    .jacobian = [](JacobianContext& c) { return diagonal(c, {kSlope, bell(c)}); },
    .cost = cost_functions,
    .samples = floating_samples<between<-2.0, 2.0>>,
    .tolerance = Tolerance::function,
    .jax_name = "erf",
    .onnx_name = "Erf",
};

constinit const OpDef op_erfc{
    .name = "erfc",
    .summary = "complementary error function, 1 - erf(x), accurate for large x",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::erfc(x); }>,
    .jacobian = [](JacobianContext& c) { return diagonal(c, {-kSlope, bell(c)}); },
    .cost = cost_functions,
    .samples = floating_samples<between<-2.0, 2.0>>,
    .tolerance = Tolerance::function,
    .jax_name = "erfc",
};

}  // namespace loipe::ops
