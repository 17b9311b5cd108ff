// SPDX-License-Identifier: Apache-2.0
// Roots and powers. Their derivatives are written with the result where that
// saves evaluating a root a second time.
#include "ops/elementwise/family.h"
#include "ops/elementwise/scalar.h"

namespace loipe::ops {

constinit const OpDef op_sqrt{
    .name = "sqrt",
    .summary = "square root",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::sqrt(x); }>,
    .jacobian = [](JacobianContext& c) { return diagonal(c, div(c.builder, 0.5, c.node)); },
    .cost = cost_functions,
    .samples = floating_samples<between<0.5, 3.0>>,
    .tolerance = Tolerance::function,
    .special_points = [](Rng&) { return std::vector{scalar_sample({0.0})}; },
    .jax_name = "sqrt",
    .onnx_name = "Sqrt",
};

constinit const OpDef op_rsqrt{
    .name = "rsqrt",
    .summary = "1 / square root",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return 1 / std::sqrt(x); }>,
    .jacobian = [](JacobianContext& c) { return diagonal(c, {-0.5, div(c.builder, c.node, c.operand())}); },
    .cost = cost_functions,
    .samples = floating_samples<between<0.5, 3.0>>,
    .tolerance = Tolerance::function,
    .special_points = [](Rng&) { return std::vector{scalar_sample({0.0})}; },
    .jax_name = "rsqrt",
};

constinit const OpDef op_cbrt{
    .name = "cbrt",
    .summary = "real cube root",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::cbrt(x); }>,
    .jacobian =
        [](JacobianContext& c) {
          Builder& b = c.builder;
          return diagonal(c, {1.0 / 3.0, div(b, 1, mul(b, c.node, c.node))});
        },
    .cost = cost_functions,
    .samples = floating_samples<away_from_zero<0.5, 3.0>>,
    .tolerance = Tolerance::function,
    .special_points = [](Rng&) { return std::vector{scalar_sample({0.0})}; },
    .jax_name = "cbrt",
};

namespace {

TensorType infer_integer_pow(const InferContext& c) {
  expect_attributes(c, {"y"});
  c.attributes.integer("y");
  const TensorType& x = c.operand(0);
  if (x.dtype == DType::boolean) throw UserError("operand has dtype bool, expected a number type");
  return x;
}

Tensor evaluate_integer_pow(const EvaluateContext& c) {
  const std::int64_t y = c.attributes.integer("y");
  Tensor result(c.type);
  visit_dtype(c.type.dtype, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>) {
      const std::span<const T> x = c.operand(0).elements<T>();
      const std::span<T> out = result.elements<T>();
      for (std::size_t i = 0; i < x.size(); ++i) out[i] = scalar::integer_power(x[i], y);
    }
  });
  return result;
}

/// d(x^y)/dx = y x^(y-1), which is 0 everywhere for y = 0, also at x = 0.
LocalJacobian integer_pow_jacobian(JacobianContext& c) {
  const std::int64_t y = c.attributes().integer("y");
  if (y == 0) return LocalJacobian::zero();
  const double factor = static_cast<double>(y);
  if (y == 1) return diagonal(c, factor);
  if (y == 2) return diagonal(c, {factor, c.operand()});
  return diagonal(c, {factor, integer_pow(c.builder, c.operand(), y - 1)});
}

/// Squarings and products of binary powering, and one division for y < 0.
OpCost integer_pow_cost(const CostContext& c) {
  const std::int64_t y = c.attributes.integer("y");
  std::int64_t products = -1;
  for (std::uint64_t n = y < 0 ? 0 - static_cast<std::uint64_t>(y) : static_cast<std::uint64_t>(y); n > 0;
       n >>= 1)
    products += (n & 1 ? 1 : 0) + (n > 1 ? 1 : 0);
  const std::int64_t count = c.type.element_count();
  return {.multiplications = count * std::max<std::int64_t>(products, 0), .divisions = y < 0 ? count : 0};
}

std::vector<Sample> integer_pow_samples(Rng& rng) {
  std::vector<Sample> samples;
  const auto append = [&](DType dtype, Draw draw, std::int64_t y) {
    const DType dtypes[] = {dtype};
    const Draw draws[] = {draw};
    for (Sample& sample : elementwise_samples(rng, dtypes, draws, {{"y", y}}))
      samples.push_back(std::move(sample));
  };
  for (std::int64_t y : {-3, -2, -1, 0, 1, 2, 3, 5}) append(DType::f64, away_from_zero<0.5, 2.0>, y);
  for (std::int64_t y : {-1, 0, 3}) append(DType::i32, small_integer, y);
  return samples;
}

std::vector<Sample> integer_pow_special_points(Rng&) {
  std::vector<Sample> samples;
  for (std::int64_t y : {0, 1, 2, -1}) samples.push_back(scalar_sample({0.0}, {{"y", y}}));
  return samples;
}

}  // namespace

constinit const OpDef op_integer_pow{
    .name = "integer_pow",
    .summary = "x to the power y for a fixed integer y",
    .arity = kUnary,
    .infer = infer_integer_pow,
    .evaluate = evaluate_integer_pow,
    .jacobian = integer_pow_jacobian,
    .cost = integer_pow_cost,
    .samples = integer_pow_samples,
    .tolerance = Tolerance::arithmetic,
    .special_points = integer_pow_special_points,
    .jax_name = "integer_pow",
};

namespace {

/// By x: y x^(y-1), and 0 where y = 0 (x^0 is 1 also at x = 0, but 0 * 0^-1 is NaN).
/// By y: log(x) x^y, and 0 where x = 0 < y (0^y is 0 along y, but log(0) * 0 is NaN).
/// The conventions are selections, so the NaN is never part of a product.
LocalJacobian pow_jacobian(JacobianContext& c) {
  Builder& b = c.builder;
  const Value x = c.operand(0), y = c.operand(1);
  if (c.operand_index == 0) {
    const Value power = pow(b, x, sub(b, y, 1));
    if (const Partial exponent = known_partial(c, y); !exponent.value)
      return diagonal(c, {exponent.coefficient, power});
    return diagonal(c, select(b, eq(b, y, 0), 0, mul(b, y, power)));
  }
  const Value is_flat = logical_and(b, eq(b, x, 0), gt(b, y, 0));
  return diagonal(c, select(b, is_flat, 0, mul(b, log(b, x), c.node)));
}

}  // namespace

constinit const OpDef op_pow{
    .name = "pow",
    .summary = "x to the power y",
    .arity = kBinary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x, auto y) { return std::pow(x, y); }>,
    .jacobian = pow_jacobian,
    .cost = cost_functions,
    .samples = floating_samples<between<0.5, 2.0>, between<-2.0, 2.0>>,
    .tolerance = Tolerance::function,
    .special_points =
        [](Rng&) {
          return std::vector{scalar_sample({0.0, 0.0}), scalar_sample({0.0, 2.0}), scalar_sample({0.0, 1.0}),
                             scalar_sample({0.0, 0.5}), scalar_sample({2.0, 0.0})};
        },
    .jax_name = "pow",
    .onnx_name = "Pow",
};

}  // namespace loipe::ops
