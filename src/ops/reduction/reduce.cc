// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/elementwise/scalar.h"
#include "ops/reduction/family.h"

namespace loipe::ops {

namespace {

/// Combines the entries one by one, in row-major order, from a start value that depends on the type.
template <auto combine, auto start>
Tensor evaluate_reduce(const EvaluateContext& c) {
  Tensor result(c.type);
  const Shape& shape = c.operand(0).shape();
  const std::array<View, 2> views{View{row_major_strides(shape)},
                                  result_view(c.attributes, shape, c.type.shape)};
  visit_dtype(c.type.dtype, [&]<class T>(T zero) {
    if constexpr (!std::is_same_v<T, bool>) {
      const std::span<const T> in = c.operand(0).elements<T>();
      const std::span<T> out = result.elements<T>();
      std::fill(out.begin(), out.end(), start(zero));
      for_each_index(shape, views, [&](const std::array<std::size_t, 2>& at) {
        out[at[1]] = combine(out[at[1]], in[at[0]]);
      });
    }
  });
  return result;
}

constexpr auto zero_start = []<class T>(T) { return T{0}; };

/// The identity of max (sign -1) and min (sign 1): an infinity, or the last integer.
template <int sign>
constexpr auto extreme_start = []<class T>(T) {
  using Limits = std::numeric_limits<T>;
  if constexpr (Limits::has_infinity) return sign * Limits::infinity();
  else return sign > 0 ? Limits::max() : Limits::min();
};

/// The running extreme is replaced only by a better entry; NaN, once met, stays.
constexpr auto larger = []<class T>(T best, T x) { return x > best || x != x ? x : best; };
constexpr auto smaller = []<class T>(T best, T x) { return x < best || x != x ? x : best; };

LocalJacobian sum_jacobian(JacobianContext& c) { return ReductionLabels(c).term.finish(c.builder); }

/// All entries that attain the extreme share the derivative equally: each gets
/// 1/count, the count being the number of ties of its result; the others are
/// masked. Equality, not a difference, finds the ties, so that infinite entries
/// are treated like all others.
LocalJacobian extreme_jacobian(JacobianContext& c) {
  Builder& b = c.builder;
  const TensorType x = c.operand_type();
  const Integers axes = c.attributes().integers("axes");
  const Value attains = eq(b, c.operand(), spread(b, c.node, x.shape, axes));
  const Value count = reduce_sum(b, convert(b, attains, x.dtype), axes);
  ReductionLabels labels(c);
  labels.term.value(div(b, 1, count), labels.kept).mask(attains, labels.all);
  return labels.term.finish(b);
}

OpCost sum_cost(const CostContext& c) {
  return {.additions = std::max<std::int64_t>(c.operand(0).element_count() - c.type.element_count(), 0)};
}

std::vector<Sample> sum_samples(Rng& rng) { return reduction_samples(rng, between<-2.0, 2.0>, true); }

/// Entries at least 1/4 apart, so that a small step changes no winner.
std::vector<Sample> extreme_samples(Rng& rng) {
  std::vector<Sample> samples = reduction_samples(rng, small_integer, true);
  for (Sample& sample : samples)
    for (std::int64_t i = 0;
         is_floating(sample.operands[0].dtype()) && i < sample.operands[0].element_count(); ++i)
      sample.operands[0].set(i, static_cast<double>(i * 5 % 13) * 0.25);
  return samples;
}

std::vector<Sample> extreme_special_points(Rng&) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<Sample> samples;
  for (const std::vector<double>& entries :
       {std::vector{2.0, 2.0, -3.0, -3.0}, std::vector{1.0, kInfinity, 0.0, -kInfinity},
        std::vector{kInfinity, kInfinity, kInfinity, kInfinity}})
    samples.push_back({{Tensor::of<double>({4}, std::span(entries))}, {{"axes", Integers{0}}}});
  return samples;
}

}  // namespace

constinit const OpDef op_reduce_sum{
    .name = "reduce_sum",
    .summary = "sum over axes, which the result drops",
    .arity = kUnary,
    .infer = infer_reduction,
    .evaluate = evaluate_reduce<scalar::add, zero_start>,
    .jacobian = sum_jacobian,
    .cost = sum_cost,
    .samples = sum_samples,
    .tolerance = Tolerance::arithmetic,
    .jax_name = "reduce_sum",
    .onnx_name = "ReduceSum",
};

constinit const OpDef op_reduce_max{
    .name = "reduce_max",
    .summary = "largest entry over axes, which the result drops; -inf of nothing",
    .arity = kUnary,
    .infer = infer_reduction,
    .evaluate = evaluate_reduce<larger, extreme_start<-1>>,
    .jacobian = extreme_jacobian,
    .cost = cost_free,
    .samples = extreme_samples,
    .tolerance = Tolerance::exact,
    .special_points = extreme_special_points,
    .jax_name = "reduce_max",
    .onnx_name = "ReduceMax",
};

constinit const OpDef op_reduce_min{
    .name = "reduce_min",
    .summary = "smallest entry over axes, which the result drops; +inf of nothing",
    .arity = kUnary,
    .infer = infer_reduction,
    .evaluate = evaluate_reduce<smaller, extreme_start<1>>,
    .jacobian = extreme_jacobian,
    .cost = cost_free,
    .samples = extreme_samples,
    .tolerance = Tolerance::exact,
    .special_points = extreme_special_points,
    .jax_name = "reduce_min",
    .onnx_name = "ReduceMin",
};

}  // namespace loipe::ops
