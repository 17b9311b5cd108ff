// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax, logsumexp. An entry of -inf does not exist: its weight is 0, and
// a mask keeps its derivative from being multiplied. Derivations: docs/theory/ops.md.
#include <limits>
#include <optional>

#include "ops/normalization/family.h"

namespace loipe::ops {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> row_of(const Tensor& x, std::int64_t first, std::int64_t n) {
  std::vector<double> row;
  for (std::int64_t i = first; i < first + n; ++i) row.push_back(x.at(i));
  return row;
}

Tensor evaluate_softmax(const EvaluateContext& c) {
  Tensor result(c.type);
  for_each_row(c.type, [&](std::int64_t first, std::int64_t n) {
    const RowExponentials e(row_of(c.operand(0), first, n));
    for (std::int64_t i = 0; i < n; ++i)
      result.set(first + i, e.largest == -kInfinity ? 0 : e.exponentials[index_of(i)] / e.total);
  });
  return result;
}

Tensor evaluate_log_softmax(const EvaluateContext& c) {
  Tensor result(c.type);
  for_each_row(c.type, [&](std::int64_t first, std::int64_t n) {
    const RowExponentials e(row_of(c.operand(0), first, n));
    for (std::int64_t i = 0; i < n; ++i)
      result.set(first + i,
                 e.largest == -kInfinity ? -kInfinity : e.differences[index_of(i)] - std::log(e.total));
  });
  return result;
}

Tensor evaluate_logsumexp(const EvaluateContext& c) {
  Tensor result(c.type);
  std::int64_t next = 0;
  for (const std::vector<double>& group : reduced_groups(c)) {
    const RowExponentials e(group);
    result.set(next++, group.empty() ? -kInfinity : e.largest + std::log(e.total));
  }
  return result;
}

/// Whether all entries of a row are -inf, along the row.
Value is_dead_row(Builder& b, Value largest, const Shape& shape) {
  return spread_rows(b, eq(b, largest, -kInfinity), shape);
}

Value expand_softmax(const ExpandContext& c) {
  Builder& b = c.builder;
  const Shape shape = b.shape(c.operands[0]);
  const Exponentials e = exponentials(b, c.operands[0], last_axis(shape));
  return select(b, is_dead_row(b, e.largest, shape), 0, e.weights);
}

Value expand_log_softmax(const ExpandContext& c) {
  Builder& b = c.builder;
  const Shape shape = b.shape(c.operands[0]);
  const Exponentials e = exponentials(b, c.operands[0], last_axis(shape));
  const Value logarithm = spread_rows(b, log(b, e.total), shape);
  return select(b, is_dead_row(b, e.largest, shape), -kInfinity, sub(b, e.difference, logarithm));
}

Value expand_logsumexp(const ExpandContext& c) {
  const Exponentials e = exponentials(c.builder, c.operands[0], c.attributes.integers("axes"));
  return add(c.builder, e.largest, log(c.builder, e.total));
}

/// Between an entry and itself, where alive: the value, or 1.
LocalJacobian same_entry(JacobianContext& c, std::optional<Value> value, Value alive) {
  TermDraft term;
  const std::vector<Label> labels = term.labels(c.type().shape);
  term.out(labels).in(labels).mask(alive, labels, MaskKind::soft);
  if (value) term.value(*value, labels);
  return term.finish(c.builder);
}

/// Minus the value, between entries i (out) and j (in) of one row, where j is alive. The value
/// is over the rows and j, or over the rows, i and j.
LocalJacobian pair_of_entries(JacobianContext& c, Value value, Value alive) {
  TermDraft term;
  const std::vector<Label> out = term.labels(c.type().shape);
  std::vector<Label> in = out;
  in.back() = term.label(c.type().shape.back());
  std::vector<Label> axes = in;
  if (c.builder.shape(value).size() > in.size()) axes.insert(axes.end() - 1, out.back());
  return term.out(out)
      .in(in)
      .coefficient(-1)
      .value(value, axes)
      .mask(alive, in, MaskKind::soft)
      .finish(c.builder);
}

LocalJacobian both(LocalJacobian a, LocalJacobian b) {
  for (Term& term : b.terms) a.terms.push_back(std::move(term));
  return a;
}

/// d s_i / d x_j = s_i (i == j) - s_i s_j. The product of rows is not formed where a
/// factor from the left or the right can be multiplied first (pass reassociation).
LocalJacobian softmax_jacobian(JacobianContext& c) {
  const Value alive = is_alive(c.builder, c.operand());
  const Value product = outer_product_of_rows(c.builder, c.node, c.node);
  return both(same_entry(c, c.node, alive), pair_of_entries(c, product, alive));
}

/// d y_i / d x_j = (i == j) - s_j.
LocalJacobian log_softmax_jacobian(JacobianContext& c) {
  const Value alive = is_alive(c.builder, c.operand());
  const Value weights = exponentials(c.builder, c.operand(), last_axis(c.type().shape)).weights;
  return both(same_entry(c, std::nullopt, alive), pair_of_entries(c, weights, alive));
}

LocalJacobian logsumexp_jacobian(JacobianContext& c) {
  Builder& b = c.builder;
  ReductionLabels labels(c);
  labels.term.value(exponentials(b, c.operand(), c.attributes().integers("axes")).weights, labels.all)
      .mask(is_alive(b, c.operand()), labels.all, MaskKind::soft);
  return labels.term.finish(b);
}

/// Differences from the maximum, exponentials and their sum.
OpCost cost_exponentials(std::int64_t in, std::int64_t rows) {
  return {.additions = in + std::max<std::int64_t>(in - rows, 0), .functions = in};
}

std::int64_t row_count(const TensorType& type) {
  return element_count(std::span(type.shape).first(type.shape.size() - 1));
}

OpCost cost_softmax(const CostContext& c) {
  OpCost cost = cost_exponentials(c.type.element_count(), row_count(c.type));
  cost.divisions = c.type.element_count();
  return cost;
}

OpCost cost_log_softmax(const CostContext& c) {
  OpCost cost = cost_exponentials(c.type.element_count(), row_count(c.type));
  cost.additions += c.type.element_count();
  cost.functions += row_count(c.type);
  return cost;
}

OpCost cost_logsumexp(const CostContext& c) {
  OpCost cost = cost_exponentials(c.operand(0).element_count(), c.type.element_count());
  cost.additions += c.type.element_count();
  cost.functions += c.type.element_count();
  return cost;
}

std::vector<Sample> softmax_samples(Rng& rng) {
  std::vector<Sample> samples;
  for (const Shape& shape : row_shapes())
    samples.push_back({{draw_tensor(rng, DType::f64, shape, between<-2.0, 2.0>)}, {}});
  return samples;
}

std::vector<Sample> special_rows(const Attributes& attributes) {
  std::vector<Sample> samples;
  for (const std::vector<double>& row :
       {std::vector{-kInfinity, 0.0, 0.0}, std::vector{-kInfinity, -kInfinity}, std::vector{kInfinity, 1.0},
        std::vector{1000.0, 1000.0}})
    samples.push_back(
        {{Tensor::of<double>({static_cast<std::int64_t>(row.size())}, std::span(row))}, attributes});
  return samples;
}

}  // namespace

constinit const OpDef op_softmax{
    .name = "softmax",
    .summary = "e to the power x over its sum along the last axis; 0 along rows of -inf alone",
    .arity = kUnary,
    .infer = [](const InferContext& c) { return infer_rows(c); },
    .evaluate = evaluate_softmax,
    .jacobian = softmax_jacobian,
    .cost = cost_softmax,
    .samples = softmax_samples,
    .tolerance = Tolerance::function,
    .special_points = [](Rng&) { return special_rows({}); },
    .jax_name = "softmax",
    .onnx_name = "Softmax",
    .expand = expand_softmax,
};

constinit const OpDef op_log_softmax{
    .name = "log_softmax",
    .summary = "logarithm of softmax along the last axis; -inf along rows of -inf alone",
    .arity = kUnary,
    .infer = [](const InferContext& c) { return infer_rows(c); },
    .evaluate = evaluate_log_softmax,
    .jacobian = log_softmax_jacobian,
    .cost = cost_log_softmax,
    .samples = softmax_samples,
    .tolerance = Tolerance::function,
    .special_points = [](Rng&) { return special_rows({}); },
    .jax_name = "log_softmax",
    .onnx_name = "LogSoftmax",
    .expand = expand_log_softmax,
};

constinit const OpDef op_logsumexp{
    .name = "logsumexp",
    .summary = "logarithm of the sum of e to the power x over axes, which the result drops; -inf of nothing",
    .arity = kUnary,
    .infer = infer_floating_reduction,
    .evaluate = evaluate_logsumexp,
    .jacobian = logsumexp_jacobian,
    .cost = cost_logsumexp,
    .samples = [](Rng& rng) { return reduction_samples(rng, between<-2.0, 2.0>, false); },
    .tolerance = Tolerance::function,
    .special_points = [](Rng&) { return special_rows({{"axes", Integers{0}}}); },
    .jax_name = "logsumexp",
    .onnx_name = "ReduceLogSumExp",
    .expand = expand_logsumexp,
};

}  // namespace loipe::ops
