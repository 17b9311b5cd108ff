// SPDX-License-Identifier: Apache-2.0
// add, sub, mul, div, rem, neg. A partial keeps the shape of the operand it comes
// from: d(x*y)/dx is y itself, however small y is.
#include "ops/elementwise/family.h"
#include "ops/elementwise/scalar.h"

namespace loipe::ops {

constinit const OpDef op_add{
    .name = "add",
    .summary = "x + y",
    .arity = kBinary,
    .infer = infer_numeric,
    .evaluate = evaluate_numeric<scalar::add>,
    .jacobian = [](JacobianContext& c) { return diagonal(c, 1); },
    .cost = cost_additions,
    .samples = numeric_samples<between<-2.0, 2.0>, between<-2.0, 2.0>>,
    .tolerance = Tolerance::arithmetic,
    .jax_name = "add",
    .onnx_name = "Add",
};

constinit const OpDef op_sub{
    .name = "sub",
    .summary = "x - y",
    .arity = kBinary,
    .infer = infer_numeric,
    .evaluate = evaluate_numeric<scalar::subtract>,
    .jacobian = [](JacobianContext& c) { return diagonal(c, c.operand_index == 0 ? 1 : -1); },
    .cost = cost_additions,
    .samples = numeric_samples<between<-2.0, 2.0>, between<-2.0, 2.0>>,
    .tolerance = Tolerance::arithmetic,
    .jax_name = "sub",
    .onnx_name = "Sub",
};

constinit const OpDef op_mul{
    .name = "mul",
    .summary = "x * y",
    .arity = kBinary,
    .infer = infer_numeric,
    .evaluate = evaluate_numeric<scalar::multiply>,
    .jacobian =
        [](JacobianContext& c) { return diagonal(c, known_partial(c, c.operand(1 - c.operand_index))); },
    .cost = cost_multiplications,
    .samples = numeric_samples<between<-2.0, 2.0>, between<-2.0, 2.0>>,
    .tolerance = Tolerance::arithmetic,
    .jax_name = "mul",
    .onnx_name = "Mul",
};

namespace {

/// 1/y by x and -(x/y)/y by y. Both use the reciprocal of y, in the shape of y, so
/// that one division serves both.
LocalJacobian div_jacobian(JacobianContext& c) {
  Builder& b = c.builder;
  const Value y = c.operand(1);
  if (const Partial known = known_partial(c, y);
      c.operand_index == 0 && !known.value && known.coefficient != 0)
    return diagonal(c, 1 / known.coefficient);
  const Value reciprocal = div(b, 1, y);
  if (c.operand_index == 0) return diagonal(c, reciprocal);
  return diagonal(c, {-1, mul(b, c.node, reciprocal)});
}

}  // namespace

constinit const OpDef op_div{
    .name = "div",
    .summary = "x / y; of integers truncated, and 0 for y = 0",
    .arity = kBinary,
    .infer = infer_numeric,
    .evaluate = evaluate_numeric<scalar::divide>,
    .jacobian = div_jacobian,
    .cost = cost_divisions,
    .samples = numeric_samples<between<-2.0, 2.0>, away_from_zero<0.5, 2.0>>,
    .tolerance = Tolerance::arithmetic,
    .special_points = [](Rng&) { return std::vector{scalar_sample({1.0, 0.0})}; },
    .jax_name = "div",
    .onnx_name = "Div",
};

namespace {

/// rem(x, y) = x - trunc(x/y) y, where trunc(x/y) is constant between its jumps.
/// (rem(x, y) - x) / y is that integer up to rounding.
LocalJacobian rem_jacobian(JacobianContext& c) {
  if (c.operand_index == 0) return diagonal(c, 1);
  Builder& b = c.builder;
  return diagonal(c, round(b, div(b, sub(b, c.node, c.operand(0)), c.operand(1))));
}

}  // namespace

constinit const OpDef op_rem{
    .name = "rem",
    .summary = "x - trunc(x/y) y, which has the sign of x; of integers x for y = 0",
    .arity = kBinary,
    .infer = infer_numeric,
    .evaluate = evaluate_numeric<scalar::remainder>,
    .jacobian = rem_jacobian,
    .cost = cost_divisions,
    // x/y stays between two integers: |x| in [0.6, 0.9] + 0..2 and y near 1.
    .samples = numeric_samples<[](Rng& rng) {
      return (rng.uniform(0.6, 0.7) + static_cast<double>(rng.below(3))) * (rng.chance(0.5) ? 1 : -1);
    },
                               between<0.95, 1.05>>,
    .tolerance = Tolerance::arithmetic,
    .special_points = [](Rng&) { return std::vector{scalar_sample({4.0, 2.0})}; },
    .jax_name = "rem",
    .onnx_name = "Mod",
};

constinit const OpDef op_neg{
    .name = "neg",
    .summary = "-x",
    .arity = kUnary,
    .infer = infer_numeric,
    .evaluate = evaluate_numeric<scalar::negate>,
    .jacobian = [](JacobianContext& c) { return diagonal(c, -1); },
    .cost = cost_free,
    .samples = numeric_samples<between<-2.0, 2.0>>,
    .tolerance = Tolerance::exact,
    .jax_name = "neg",
    .onnx_name = "Neg",
};

}  // namespace loipe::ops
