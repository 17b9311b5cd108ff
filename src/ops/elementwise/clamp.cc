// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/elementwise/family.h"

namespace loipe::ops {

namespace {

/// min(max(x, low), high), so that a NaN among the three stays, and `high` wins where low > high.
Tensor evaluate_clamp(const EvaluateContext& c) {
  Tensor result(c.type);
  const std::array<View, 3> views{broadcast_view(c.operand(0).shape(), c.type.shape),
                                  broadcast_view(c.operand(1).shape(), c.type.shape),
                                  broadcast_view(c.operand(2).shape(), c.type.shape)};
  visit_dtype(c.type.dtype, [&]<class T>(T) {
    const std::span<const T> x = c.operand(0).elements<T>(), low = c.operand(1).elements<T>(),
                             high = c.operand(2).elements<T>();
    const std::span<T> out = result.elements<T>();
    std::size_t position = 0;
    for_each_index(c.type.shape, views, [&](const std::array<std::size_t, 3>& at) {
      const T above = x[at[0]] > low[at[1]] || x[at[0]] != x[at[0]] ? x[at[0]] : low[at[1]];
      out[position++] = above < high[at[2]] || above != above ? above : high[at[2]];
    });
  });
  return result;
}

/// 1 where `mine` wins, 1/2 at a tie; what loses is masked by the caller.
Value share(Builder& b, Value mine, Value other) {
  return select(b, eq(b, mine, other), 0.5, b.scalar(1, b.type(mine).dtype));
}

/// The rules of max and min one after the other: at a tie each operand has half.
LocalJacobian clamp_jacobian(JacobianContext& c) {
  Builder& b = c.builder;
  const Value x = c.operand(0), low = c.operand(1), high = c.operand(2);
  const Value above = max(b, x, low);
  if (c.operand_index == 2)
    return diagonal(c, Partial(share(b, high, above)).where(le(b, high, above), MaskKind::soft));
  const Value other = c.operand_index == 0 ? low : x;
  const Value both = mul(b, share(b, c.operand(), other), share(b, above, high));
  return diagonal(
      c, Partial(both).where(logical_and(b, ge(b, c.operand(), other), le(b, above, high)), MaskKind::soft));
}

constexpr Draw kHalves = [](Rng& rng) { return 0.5 * small_integer(rng); };
constexpr Draw kLow = [](Rng& rng) { return rng.chance(0.5) ? -0.75 : -1.25; };
constexpr Draw kHigh = [](Rng& rng) { return rng.chance(0.5) ? 0.75 : 1.25; };

std::vector<Sample> clamp_samples(Rng& rng) {
  std::vector<Sample> samples = floating_samples<kHalves, kLow, kHigh>(rng);
  for (Sample& sample : integral_samples(rng, DType::i32, 3)) samples.push_back(std::move(sample));
  return samples;
}

std::vector<Sample> clamp_special_points(Rng&) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {scalar_sample({0.0, 0.0, 1.0}), scalar_sample({1.0, 0.0, 1.0}),
          scalar_sample({kInfinity, 0.0, 1.0}), scalar_sample({2.0, -kInfinity, kInfinity})};
}

}  // namespace

constinit const OpDef op_clamp{
    .name = "clamp",
    .summary = "x, but at least low and at most high; operands x, low, high",
    .arity = kTernary,
    .infer = infer_numeric,
    .evaluate = evaluate_clamp,
    .jacobian = clamp_jacobian,
    .cost = cost_free,
    .samples = clamp_samples,
    .tolerance = Tolerance::exact,
    .special_points = clamp_special_points,
    .jax_name = "clamp",
    .onnx_name = "Clip",
    .expand =
        [](const ExpandContext& c) {
          return min(c.builder, max(c.builder, c.operands[0], c.operands[1]), c.operands[2]);
        },
};

}  // namespace loipe::ops
