// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/family.h"

namespace loipe::ops {

constinit const OpDef op_sinh{
    .name = "sinh",
    .summary = "hyperbolic sine",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::sinh(x); }>,
    .jacobian = [](JacobianContext& c) { return diagonal(c, cosh(c.builder, c.operand())); },
    .cost = cost_functions,
    .samples = floating_samples<between<-2.0, 2.0>>,
    .tolerance = Tolerance::function,
    .jax_name = "sinh",
    .onnx_name = "Sinh",
};

constinit const OpDef op_cosh{
    .name = "cosh",
    .summary = "hyperbolic cosine",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::cosh(x); }>,
    .jacobian = [](JacobianContext& c) { return diagonal(c, sinh(c.builder, c.operand())); },
    .cost = cost_functions,
    .samples = floating_samples<between<-2.0, 2.0>>,
    .tolerance = Tolerance::function,
    .jax_name = "cosh",
    .onnx_name = "Cosh",
};

constinit const OpDef op_tanh{
    .name = "tanh",
    .summary = "hyperbolic tangent",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::tanh(x); }>,
    .jacobian =
        [](JacobianContext& c) {
          Builder& b = c.builder;
          return diagonal(c, sub(b, 1, mul(b, c.node, c.node)));
        },
    .cost = cost_functions,
    .samples = floating_samples<between<-2.0, 2.0>>,
    .tolerance = Tolerance::function,
    .jax_name = "tanh",
    .onnx_name = "Tanh",
};

constinit const OpDef op_asinh{
    .name = "asinh",
    .summary = "inverse hyperbolic sine",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::asinh(x); }>,
    .jacobian =
        [](JacobianContext& c) {
          Builder& b = c.builder;
          return diagonal(c, rsqrt(b, add(b, mul(b, c.operand(), c.operand()), 1)));
        },
    .cost = cost_functions,
    .samples = floating_samples<between<-2.0, 2.0>>,
    .tolerance = Tolerance::function,
    .jax_name = "asinh",
    .onnx_name = "Asinh",
};

constinit const OpDef op_acosh{
    .name = "acosh",
    .summary = "inverse hyperbolic cosine",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::acosh(x); }>,
    .jacobian =
        [](JacobianContext& c) {
          Builder& b = c.builder;
          const Value x = c.operand();
          return diagonal(c, rsqrt(b, mul(b, sub(b, x, 1), add(b, x, 1))));
        },
    .cost = cost_functions,
    .samples = floating_samples<between<1.5, 4.0>>,
    .tolerance = Tolerance::function,
    .special_points = [](Rng&) { return std::vector{scalar_sample({1.0})}; },
    .jax_name = "acosh",
    .onnx_name = "Acosh",
};

constinit const OpDef op_atanh{
    .name = "atanh",
    .summary = "inverse hyperbolic tangent",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::atanh(x); }>,
    .jacobian =
        [](JacobianContext& c) {
          Builder& b = c.builder;
          const Value x = c.operand();
          return diagonal(c, div(b, 1, mul(b, sub(b, 1, x), add(b, x, 1))));
        },
    .cost = cost_functions,
    .samples = floating_samples<between<-0.7, 0.7>>,
    .tolerance = Tolerance::function,
    .special_points = [](Rng&) { return std::vector{scalar_sample({1.0}), scalar_sample({-1.0})}; },
    .jax_name = "atanh",
    .onnx_name = "Atanh",
};

}  // namespace loipe::ops
