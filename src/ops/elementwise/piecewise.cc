// SPDX-License-Identifier: Apache-2.0
// Ops that are linear or constant between kinks and jumps. What holds exactly at
// those points is the table in docs/theory/singular_points.md.
#include "ops/elementwise/family.h"
#include "ops/elementwise/scalar.h"

namespace loipe::ops {

namespace {

/// Regular points of ops that jump at integers and halves.
double between_jumps(Rng& rng) { return small_integer(rng) + (rng.chance(0.5) ? 0.25 : -0.25); }

template <double x>
std::vector<Sample> at(Rng&) {
  return {scalar_sample({x})};
}

constexpr auto absolute = []<class T>(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::abs(x);
  else return x < 0 ? scalar::negate(x) : x;
};

/// NaN and both zeros are their own sign.
constexpr auto sign_of = []<class T>(T x) -> T { return x > 0 ? T{1} : x < 0 ? T{-1} : x; };

}  // namespace

constinit const OpDef op_abs{
    .name = "abs",
    .summary = "absolute value",
    .arity = kUnary,
    .infer = infer_numeric,
    .evaluate = evaluate_numeric<absolute>,
    .jacobian = [](JacobianContext& c) { return diagonal(c, sign(c.builder, c.operand())); },
    .cost = cost_free,
    .samples = numeric_samples<away_from_zero<0.5, 2.0>>,
    .tolerance = Tolerance::exact,
    .special_points = at<0.0>,
    .jax_name = "abs",
    .onnx_name = "Abs",
};

constinit const OpDef op_sign{
    .name = "sign",
    .summary = "-1, 0 or 1",
    .arity = kUnary,
    .infer = infer_numeric,
    .evaluate = evaluate_numeric<sign_of>,
    .jacobian = zero_jacobian,
    .cost = cost_free,
    .samples = numeric_samples<away_from_zero<0.5, 2.0>>,
    .tolerance = Tolerance::exact,
    .special_points = at<0.0>,
    .jax_name = "sign",
    .onnx_name = "Sign",
};

constinit const OpDef op_floor{
    .name = "floor",
    .summary = "the largest integer that is at most x",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::floor(x); }>,
    .jacobian = zero_jacobian,
    .cost = cost_free,
    .samples = floating_samples<between_jumps>,
    .tolerance = Tolerance::exact,
    .special_points = at<1.0>,
    .jax_name = "floor",
    .onnx_name = "Floor",
};

constinit const OpDef op_ceil{
    .name = "ceil",
    .summary = "the smallest integer that is at least x",
    .arity = kUnary,
    .infer = infer_floating,
    .evaluate = evaluate_floating<[](auto x) { return std::ceil(x); }>,
    .jacobian = zero_jacobian,
    .cost = cost_free,
    .samples = floating_samples<between_jumps>,
    .tolerance = Tolerance::exact,
    .special_points = at<1.0>,
    .jax_name = "ceil",
    .onnx_name = "Ceil",
};

constinit const OpDef op_round{
    .name = "round",
    .summary = "the nearest integer, the even one of two",
    .arity = kUnary,
    .infer = infer_floating,
    // The rounding mode of the process is round-half-even, which nothing in Loipe changes.
    .evaluate = evaluate_floating<[](auto x) { return std::nearbyint(x); }>,
    .jacobian = zero_jacobian,
    .cost = cost_free,
    .samples = floating_samples<between_jumps>,
    .tolerance = Tolerance::exact,
    .special_points = at<-2.5>,
    .jax_name = "round",
    .onnx_name = "Round",
};

namespace {

/// x where it wins, and NaN when either is NaN.
constexpr auto larger = []<class T>(T x, T y) { return x > y || x != x ? x : y; };
constexpr auto smaller = []<class T>(T x, T y) { return x < y || x != x ? x : y; };

/// 1 where the operand wins, 1/2 where both are equal, nothing where it loses. The
/// losing entries are masked and not multiplied by 0, so that they contribute
/// exactly nothing even next to an infinite derivative.
LocalJacobian winner_jacobian(JacobianContext& c, Value (*wins_or_ties)(Builder&, Value, Value)) {
  Builder& b = c.builder;
  const Value mine = c.operand(), other = c.operand(1 - c.operand_index);
  const Value share = select(b, eq(b, mine, other), 0.5, b.scalar(1, c.dtype()));
  return diagonal(c, Partial(share).where(wins_or_ties(b, mine, other)));
}

/// Operands on two grids that never meet, at least 1/4 apart.
constexpr Draw kHalves = [](Rng& rng) { return 0.5 * small_integer(rng); };
constexpr Draw kBetweenHalves = [](Rng& rng) { return 0.5 * small_integer(rng) + 0.25; };

std::vector<Sample> ties(Rng&) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {scalar_sample({0.0, 0.0}), scalar_sample({kInfinity, 1.0}), scalar_sample({-kInfinity, 1.0})};
}

}  // namespace

constinit const OpDef op_max{
    .name = "max",
    .summary = "the larger of x and y",
    .arity = kBinary,
    .infer = infer_numeric,
    .evaluate = evaluate_numeric<larger>,
    .jacobian = [](JacobianContext& c) { return winner_jacobian(c, ge); },
    .cost = cost_free,
    .samples = numeric_samples<kHalves, kBetweenHalves>,
    .tolerance = Tolerance::exact,
    .special_points = ties,
    .jax_name = "max",
    .onnx_name = "Max",
};

constinit const OpDef op_min{
    .name = "min",
    .summary = "the smaller of x and y",
    .arity = kBinary,
    .infer = infer_numeric,
    .evaluate = evaluate_numeric<smaller>,
    .jacobian = [](JacobianContext& c) { return winner_jacobian(c, le); },
    .cost = cost_free,
    .samples = numeric_samples<kHalves, kBetweenHalves>,
    .tolerance = Tolerance::exact,
    .special_points = ties,
    .jax_name = "min",
    .onnx_name = "Min",
};

}  // namespace loipe::ops
