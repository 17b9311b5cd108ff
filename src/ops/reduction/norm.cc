// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "ops/reduction/family.h"

namespace loipe::ops {

namespace {

/// s sqrt(sum of (x/s)^2) with s = max |x|: the squares neither overflow nor vanish.
/// Without entries, and where the maximum is 0, infinite or NaN, s is 1.
Tensor evaluate_norm(const EvaluateContext& c) {
  Tensor result(c.type);
  std::int64_t next = 0;
  for (const std::vector<double>& group : reduced_groups(c)) {
    double largest = 0, sum = 0;
    for (double x : group) largest = std::max(largest, std::abs(x));
    const double scale = largest > 0 && std::isfinite(largest) ? largest : 1;
    for (double x : group) sum += (x / scale) * (x / scale);
    result.set(next++, scale * std::sqrt(sum));
  }
  return result;
}

/// x / norm; at 0, the kink of a cone, there is no derivative: the mean over all directions.
LocalJacobian norm_jacobian(JacobianContext& c) {
  Builder& b = c.builder;
  const Integers axes = c.attributes().integers("axes");
  const Value is_regular = ne(b, c.node, 0), divisor = select(b, is_regular, c.node, 1);
  ReductionLabels labels(c);
  labels.term.value(div(b, c.operand(), spread(b, divisor, c.operand_type().shape, axes)), labels.all)
      .mask(is_regular, labels.kept, MaskKind::soft);
  return labels.term.finish(b);
}

Value expand_norm(const ExpandContext& c) {
  Builder& b = c.builder;
  const Value x = c.operands[0];
  const Integers& axes = c.attributes.integers("axes");
  const Value largest = reduce_max(b, abs(b, x), axes);
  const Value is_usable =
      logical_and(b, gt(b, largest, 0), lt(b, largest, std::numeric_limits<double>::infinity()));
  const Value scale = select(b, is_usable, largest, 1);
  const Value scaled = div(b, x, spread(b, scale, b.shape(x), axes));
  return mul(b, scale, sqrt(b, reduce_sum(b, mul(b, scaled, scaled), axes)));
}

OpCost cost_norm(const CostContext& c) {
  const std::int64_t in = c.operand(0).element_count(), out = c.type.element_count();
  return {.multiplications = in + out,
          .additions = std::max<std::int64_t>(in - out, 0),
          .divisions = in,
          .functions = out};
}

std::vector<Sample> norm_special_points(Rng&) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Attributes over_all{{"axes", Integers{0}}};
  return {{{Tensor::of<double>({2}, {0, 0})}, over_all},
          {{Tensor::of<double>({2}, {3e-200, 4e-200})}, over_all},
          {{Tensor::of<double>({2}, {3e200, -4e200})}, over_all},
          {{Tensor::of<double>({2}, {kInfinity, 1})}, over_all}};
}

}  // namespace

constinit const OpDef op_norm{
    .name = "norm",
    .summary = "euclidean norm over axes, which the result drops; squares neither overflow nor underflow",
    .arity = kUnary,
    .infer = infer_floating_reduction,
    .evaluate = evaluate_norm,
    .jacobian = norm_jacobian,
    .cost = cost_norm,
    .samples = [](Rng& rng) { return reduction_samples(rng, away_from_zero<0.5, 2.0>, false); },
    .tolerance = Tolerance::function,
    .special_points = norm_special_points,
    .jax_name = "norm",
    .onnx_name = "ReduceL2",
    .expand = expand_norm,
};

}  // namespace loipe::ops
