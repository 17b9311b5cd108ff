// SPDX-License-Identifier: Apache-2.0
// Comparisons and logic. Comparisons follow IEEE 754: NaN equals nothing.
#include <functional>

#include "ops/elementwise/family.h"

namespace loipe::ops {

namespace {

constexpr Differentiation kBoolResult = Differentiation::none("the result is bool");
constexpr Differentiation kDiscrete = Differentiation::none("operands and result are bool or integers");

/// Operands that are often equal, of every kind of dtype.
std::vector<Sample> comparison_samples(Rng& rng) {
  std::vector<Sample> samples = numeric_samples<small_integer, small_integer>(rng);
  for (Sample& sample : integral_samples(rng, DType::boolean, 2)) samples.push_back(std::move(sample));
  return samples;
}

}  // namespace

constinit const OpDef op_eq{
    .name = "eq",
    .summary = "x == y",
    .arity = kBinary,
    .infer = infer_comparison,
    .evaluate = evaluate_comparison<[](auto x, auto y) { return x == y; }>,
    .jacobian = kBoolResult,
    .cost = cost_free,
    .samples = comparison_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "eq",
    .onnx_name = "Equal",
};

constinit const OpDef op_ne{
    .name = "ne",
    .summary = "x != y",
    .arity = kBinary,
    .infer = infer_comparison,
    .evaluate = evaluate_comparison<[](auto x, auto y) { return x != y; }>,
    .jacobian = kBoolResult,
    .cost = cost_free,
    .samples = comparison_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "ne",
};

constinit const OpDef op_lt{
    .name = "lt",
    .summary = "x < y",
    .arity = kBinary,
    .infer = infer_comparison,
    .evaluate = evaluate_comparison<[](auto x, auto y) { return x < y; }>,
    .jacobian = kBoolResult,
    .cost = cost_free,
    .samples = comparison_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "lt",
    .onnx_name = "Less",
};

constinit const OpDef op_le{
    .name = "le",
    .summary = "x <= y",
    .arity = kBinary,
    .infer = infer_comparison,
    .evaluate = evaluate_comparison<[](auto x, auto y) { return x <= y; }>,
    .jacobian = kBoolResult,
    .cost = cost_free,
    .samples = comparison_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "le",
    .onnx_name = "LessOrEqual",
};

constinit const OpDef op_gt{
    .name = "gt",
    .summary = "x > y",
    .arity = kBinary,
    .infer = infer_comparison,
    .evaluate = evaluate_comparison<[](auto x, auto y) { return (x > y); }>,
    .jacobian = kBoolResult,
    .cost = cost_free,
    .samples = comparison_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "gt",
    .onnx_name = "Greater",
};

constinit const OpDef op_ge{
    .name = "ge",
    .summary = "x >= y",
    .arity = kBinary,
    .infer = infer_comparison,
    .evaluate = evaluate_comparison<[](auto x, auto y) { return x >= y; }>,
    .jacobian = kBoolResult,
    .cost = cost_free,
    .samples = comparison_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "ge",
    .onnx_name = "GreaterOrEqual",
};

constinit const OpDef op_and{
    .name = "and",
    .summary = "logical and of bool, bitwise and of integers",
    .arity = kBinary,
    .infer = infer_logical,
    .evaluate = evaluate_logical<[](auto x, auto y) { return x & y; }>,
    .jacobian = kDiscrete,
    .cost = cost_free,
    .samples = logical_samples<2>,
    .tolerance = Tolerance::exact,
    .jax_name = "and",
    .onnx_name = "And",
};

constinit const OpDef op_or{
    .name = "or",
    .summary = "logical or of bool, bitwise or of integers",
    .arity = kBinary,
    .infer = infer_logical,
    .evaluate = evaluate_logical<[](auto x, auto y) { return x | y; }>,
    .jacobian = kDiscrete,
    .cost = cost_free,
    .samples = logical_samples<2>,
    .tolerance = Tolerance::exact,
    .jax_name = "or",
    .onnx_name = "Or",
};

constinit const OpDef op_xor{
    .name = "xor",
    .summary = "logical exclusive or of bool, bitwise exclusive or of integers",
    .arity = kBinary,
    .infer = infer_logical,
    .evaluate = evaluate_logical<[](auto x, auto y) { return x ^ y; }>,
    .jacobian = kDiscrete,
    .cost = cost_free,
    .samples = logical_samples<2>,
    .tolerance = Tolerance::exact,
    .jax_name = "xor",
    .onnx_name = "Xor",
};

constinit const OpDef op_not{
    .name = "not",
    .summary = "logical negation of bool, bitwise complement of integers",
    .arity = kUnary,
    .infer = infer_logical,
    .evaluate = evaluate_logical<[]<class T>(T x) -> T {
      if constexpr (std::is_same_v<T, bool>) return !x;
      else return ~x;
    }>,
    .jacobian = kDiscrete,
    .cost = cost_free,
    .samples = logical_samples<1>,
    .tolerance = Tolerance::exact,
    .jax_name = "not",
    .onnx_name = "Not",
};

}  // namespace loipe::ops
