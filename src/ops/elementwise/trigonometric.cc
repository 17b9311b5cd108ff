// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/family.h"

namespace loipe::ops {

namespace {

/// (1 - x)(1 + x): 1 - x^2 without cancellation near |x| = 1.
Value one_minus_square(Builder& b, Value x) { return mul(b, sub(b, 1, x), add(b, x, 1)); }

}  // namespace

constinit const OpDef op_sin{
    .name = "sin",
    .summary = "sine",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::sin(x); }>,
    .jacobian = [](JacobianContext& c) { return diagonal(c, cos(c.builder, c.operand())); },
    .cost = cost_functions,
    .samples = floating_samples<between<-3.0, 3.0>>,
    .tolerance = Tolerance::function,
    .jax_name = "sin",
    .onnx_name = "Sin",
};

constinit const OpDef op_cos{
    .name = "cos",
    .summary = "cosine",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::cos(x); }>,
    .jacobian = [](JacobianContext& c) { return diagonal(c, {-1, sin(c.builder, c.operand())}); },
    .cost = cost_functions,
    .samples = floating_samples<between<-3.0, 3.0>>,
    .tolerance = Tolerance::function,
    .jax_name = "cos",
    .onnx_name = "Cos",
};

constinit const OpDef op_tan{
    .name = "tan",
    .summary = "tangent",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::tan(x); }>,
    .jacobian =
        [](JacobianContext& c) {
          Builder& b = c.builder;
          return diagonal(c, add(b, mul(b, c.node, c.node), 1));
        },
    .cost = cost_functions,
    .samples = floating_samples<between<-1.0, 1.0>>,
    .tolerance = Tolerance::function,
    .jax_name = "tan",
    .onnx_name = "Tan",
};

constinit const OpDef op_asin{
    .name = "asin",
    .summary = "inverse sine",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::asin(x); }>,
    .jacobian =
        [](JacobianContext& c) {
          return diagonal(c, rsqrt(c.builder, one_minus_square(c.builder, c.operand())));
        },
    .cost = cost_functions,
    .samples = floating_samples<between<-0.7, 0.7>>,
    .tolerance = Tolerance::function,
    .special_points = [](Rng&) { return std::vector{scalar_sample({1.0}), scalar_sample({-1.0})}; },
    .jax_name = "asin",
    .onnx_name = "Asin",
};

constinit const OpDef op_acos{
    .name = "acos",
    .summary = "inverse cosine",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::acos(x); }>,
    .jacobian =
        [](JacobianContext& c) {
          return diagonal(c, {-1, rsqrt(c.builder, one_minus_square(c.builder, c.operand()))});
        },
    .cost = cost_functions,
    .samples = floating_samples<between<-0.7, 0.7>>,
    .tolerance = Tolerance::function,
    .special_points = [](Rng&) { return std::vector{scalar_sample({1.0}), scalar_sample({-1.0})}; },
    .jax_name = "acos",
    .onnx_name = "Acos",
};

constinit const OpDef op_atan{
    .name = "atan",
    .summary = "inverse tangent",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::atan(x); }>,
    .jacobian =
        [](JacobianContext& c) {
          Builder& b = c.builder;
          return diagonal(c, div(b, 1, add(b, mul(b, c.operand(), c.operand()), 1)));
        },
    .cost = cost_functions,
    .samples = floating_samples<between<-2.0, 2.0>>,
    .tolerance = Tolerance::function,
    .jax_name = "atan",
    .onnx_name = "Atan",
};

namespace {

/// The angle of (x, y) turns by (x dy - y dx) / (x^2 + y^2). At the origin, where
/// it jumps, both partials are 0: there the numerators are 0 and the denominator
/// is replaced by 1.
LocalJacobian atan2_jacobian(JacobianContext& c) {
  Builder& b = c.builder;
  const Value y = c.operand(0), x = c.operand(1);
  const Value is_origin = logical_and(b, eq(b, x, 0), eq(b, y, 0));
  const Value radius_squared = select(b, is_origin, 1, add(b, mul(b, x, x), mul(b, y, y)));
  if (c.operand_index == 0) return diagonal(c, div(b, x, radius_squared));
  return diagonal(c, {-1, div(b, y, radius_squared)});
}

}  // namespace

constinit const OpDef op_atan2{
    .name = "atan2",
    .summary = "the angle of the point (x, y), operands in the order y, x",
    .arity = kBinary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto y, auto x) { return std::atan2(y, x); }>,
    .jacobian = atan2_jacobian,
    .cost = cost_functions,
    .samples = floating_samples<away_from_zero<0.5, 2.0>, away_from_zero<0.5, 2.0>>,
    .tolerance = Tolerance::function,
    .special_points = [](Rng&) { return std::vector{scalar_sample({0.0, 0.0})}; },
    .jax_name = "atan2",
};

}  // namespace loipe::ops
