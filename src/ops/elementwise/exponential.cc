// SPDX-License-Identifier: Apache-2.0
// exp, log and their relatives.
#include <numbers>

#include "ops/elementwise/family.h"

namespace loipe::ops {

constinit const OpDef op_exp{
    .name = "exp",
    .summary = "e to the power x",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::exp(x); }>,
    .jacobian = [](JacobianContext& c) { return diagonal(c, c.node); },
    .cost = cost_functions,
    .samples = floating_samples<between<-2.0, 2.0>>,
    .tolerance = Tolerance::function,
    .jax_name = "exp",
    .onnx_name = "Exp",
};

constinit const OpDef op_exp2{
    .name = "exp2",
    .summary = "2 to the power x",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::exp2(x); }>,
    .jacobian = [](JacobianContext& c) { return diagonal(c, {std::numbers::ln2, c.node}); },
    .cost = cost_functions,
    .samples = floating_samples<between<-2.0, 2.0>>,
    .tolerance = Tolerance::function,
    .jax_name = "exp2",
};

constinit const OpDef op_expm1{
    .name = "expm1",
    .summary = "e to the power x, minus 1, accurate near x = 0",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::expm1(x); }>,
    .jacobian = [](JacobianContext& c) { return diagonal(c, add(c.builder, c.node, 1)); },
    .cost = cost_functions,
    .samples = floating_samples<between<-2.0, 2.0>>,
    .tolerance = Tolerance::function,
    .jax_name = "expm1",
};

constinit const OpDef op_log{
    .name = "log",
    .summary = "natural logarithm",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::log(x); }>,
    .jacobian = [](JacobianContext& c) { return diagonal(c, div(c.builder, 1, c.operand())); },
    .cost = cost_functions,
    .samples = floating_samples<between<0.5, 3.0>>,
    .tolerance = Tolerance::function,
    .special_points = [](Rng&) { return std::vector{scalar_sample({0.0})}; },
    .jax_name = "log",
    .onnx_name = "Log",
};

constinit const OpDef op_log1p{
    .name = "log1p",
    .summary = "natural logarithm of 1 + x, accurate near x = 0",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::log1p(x); }>,
    .jacobian =
        [](JacobianContext& c) { return diagonal(c, div(c.builder, 1, add(c.builder, c.operand(), 1))); },
    .cost = cost_functions,
    .samples = floating_samples<between<-0.5, 2.0>>,
    .tolerance = Tolerance::function,
    .special_points = [](Rng&) { return std::vector{scalar_sample({-1.0})}; },
    .jax_name = "log1p",
};

constinit const OpDef op_logistic{
    .name = "logistic",
    .summary = "1 / (1 + e to the power -x)",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return 1 / (1 + std::exp(-x)); }>,
    .jacobian =
        [](JacobianContext& c) {
          Builder& b = c.builder;
          return diagonal(c, mul(b, c.node, sub(b, 1, c.node)));
        },
    .cost =
        [](const CostContext& c) {
          const std::int64_t count = c.type.element_count();
          return OpCost{.additions = count, .divisions = count, .functions = count};
        },
    .samples = floating_samples<between<-2.0, 2.0>>,
    .tolerance = Tolerance::function,
    .jax_name = "logistic",
    .onnx_name = "Sigmoid",
};

}  // namespace loipe::ops
