// SPDX-License-Identifier: Apache-2.0
// layer_norm and rms_norm. With x^ the row on one scale, n its length, r = 1/sqrt(variance + eps)
// and w the optional weights,
//
//   layer_norm  y = w x^ + bias, x^ = r (x - mean):  dy_i/dx_j = w_i r ((i == j) - 1/n - x^_i x^_j / n)
//   rms_norm    y = w x^,        x^ = r x:           dy_i/dx_j = w_i r ((i == j)       - x^_i x^_j / n)
#include <cmath>

#include "ops/normalization/family.h"

namespace loipe::ops {

namespace {

TensorType infer_norm(const InferContext& c) {
  const TensorType type = infer_rows(c, {"eps"});
  const double eps = c.attributes.number("eps");
  if (!(eps >= 0))
    throw UserError("eps is " + std::to_string(eps) + ", expected a number that is at least 0");
  const TensorType row{type.dtype, {type.shape.back()}};
  for (std::size_t i = 1; i < c.operands.size(); ++i)
    if (c.operand(i) != row)
      throw UserError("operand " + std::to_string(i) + ", the " + (i == 1 ? "scale" : "bias") + ", is " +
                      to_string(c.operand(i)) + ", expected " + to_string(row) +
                      ", one number per entry of a row");
  return type;
}

/// Two passes: the mean first, then the mean square of what is left. The difference
/// mean(x^2) - mean(x)^2 would cancel where the mean is large.
template <bool is_centred>
Tensor evaluate_norm(const EvaluateContext& c) {
  Tensor result(c.type);
  const double eps = c.attributes.number("eps");
  for_each_row(c.type, [&](std::int64_t first, std::int64_t n) {
    const auto count = static_cast<double>(n);
    double mean = 0, square = 0;
    for (std::int64_t i = 0; is_centred && i < n; ++i) mean += c.operand(0).at(first + i) / count;
    for (std::int64_t i = 0; i < n; ++i) square += std::pow(c.operand(0).at(first + i) - mean, 2) / count;
    for (std::int64_t i = 0; i < n; ++i) {
      double y = (c.operand(0).at(first + i) - mean) / std::sqrt(square + eps);
      if (c.operands.size() > 1) y *= c.operand(1).at(i);
      if (c.operands.size() > 2) y += c.operand(2).at(i);
      result.set(first + i, y);
    }
  });
  return result;
}

/// What is left of x without the mean of each row. Centred twice: the first mean is
/// rounded by up to the size of x times n ulp, the second one removes what that left.
Value centred(Builder& b, Value x) {
  const Shape shape = b.shape(x);
  const auto count = static_cast<double>(shape.back());
  for (int pass = 0; pass < 2; ++pass) {
    const Value mean = div(b, reduce_sum(b, x, last_axis(shape)), b.scalar(count, b.type(x).dtype));
    x = sub(b, x, spread_rows(b, mean, shape));
  }
  return x;
}

/// x^ and r of the rows of a node's first operand.
struct Normalised {
  Value rate;    ///< r, one per row
  Value scaled;  ///< x^

  Normalised(Builder& b, Value x, const Attributes& attributes, bool is_centred) {
    const Shape shape = b.shape(x);
    const DType dtype = b.type(x).dtype;
    if (is_centred) x = centred(b, x);
    const Value square = div(b, reduce_sum(b, mul(b, x, x), last_axis(shape)),
                             b.scalar(static_cast<double>(shape.back()), dtype));
    rate = rsqrt(b, add(b, square, attributes.number("eps")));
    scaled = mul(b, x, spread_rows(b, rate, shape));
  }
};

Value along_rows(Builder& b, Value row, const Shape& shape) {
  return broadcast_in_dim(b, row, shape, last_axis(shape));
}

template <bool is_centred>
Value expand_norm(const ExpandContext& c) {
  Builder& b = c.builder;
  const Shape shape = b.shape(c.operands[0]);
  Value y = Normalised(b, c.operands[0], c.attributes, is_centred).scaled;
  if (c.operands.size() > 1) y = mul(b, y, along_rows(b, c.operands[1], shape));
  if (c.operands.size() > 2) y = add(b, y, along_rows(b, c.operands[2], shape));
  return y;
}

/// Appends coefficient * value over (rows, i) between out (rows, i) and in (rows, j), or
/// (rows, i) for j = i. The value may lack the axis i, or have j behind it.
void append(JacobianContext& c, LocalJacobian& jacobian, bool is_diagonal, Value value, double coefficient) {
  TermDraft term;
  const std::vector<Label> out = term.labels(c.type().shape);
  std::vector<Label> in = out, axes = out;
  if (!is_diagonal) in.back() = term.label(c.type().shape.back());
  const std::size_t rank = c.builder.shape(value).size();
  if (rank < out.size()) axes.pop_back();
  if (rank > out.size()) axes.push_back(in.back());
  term.out(out).in(in).coefficient(coefficient).value(value, axes);
  for (Term& t : term.finish(c.builder).terms) jacobian.terms.push_back(std::move(t));
}

LocalJacobian jacobian_by_rows(JacobianContext& c, const Normalised& norm, bool is_centred) {
  Builder& b = c.builder;
  const Shape shape = c.type().shape;
  const bool has_scale = c.operand_count() > 1;
  const Value rate =
      has_scale ? mul(b, spread_rows(b, norm.rate, shape), along_rows(b, c.operand(1), shape)) : norm.rate;
  const Value part = mul(b, 1 / static_cast<double>(shape.back()), rate);
  const Value weighted = mul(b, has_scale ? part : spread_rows(b, part, shape), norm.scaled);
  LocalJacobian jacobian;
  append(c, jacobian, true, rate, 1);
  if (is_centred) append(c, jacobian, false, part, -1);
  append(c, jacobian, false, outer_product_of_rows(b, weighted, norm.scaled), -1);
  return jacobian;
}

template <bool is_centred>
LocalJacobian norm_jacobian(JacobianContext& c) {
  const Shape shape = c.type().shape;
  if (element_count(shape) == 0) return LocalJacobian::zero();
  TermDraft term;
  const std::vector<Label> labels = term.labels(shape);
  term.out(labels).in({labels.back()});
  if (c.operand_index == 2) return term.finish(c.builder);
  const Normalised norm(c.builder, c.operand(0), c.attributes(), is_centred);
  if (c.operand_index == 0) return jacobian_by_rows(c, norm, is_centred);
  return term.value(norm.scaled, labels).finish(c.builder);
}

/// That of the expansion.
template <bool is_centred>
OpCost cost_norm(const CostContext& c) {
  const std::int64_t count = c.type.element_count();
  const std::int64_t rows = element_count(std::span(c.type.shape).first(c.type.shape.size() - 1));
  const std::int64_t scaled = static_cast<std::int64_t>(c.operands.size()) - 1;
  const std::int64_t sums = is_centred ? 3 : 1;
  OpCost cost{.multiplications = 2 * count, .additions = rows, .divisions = sums * rows, .functions = rows};
  cost.additions += sums * std::max<std::int64_t>(count - rows, 0) + (sums - 1) * count;
  if (scaled > 0) cost.multiplications += count;
  if (scaled > 1) cost.additions += count;
  return cost;
}

std::vector<Sample> norm_samples(Rng& rng, std::int64_t most_operands) {
  std::vector<Sample> samples;
  std::int64_t next = 0;
  for (const Shape& shape : row_shapes()) {
    Sample sample{{draw_tensor(rng, DType::f64, shape, between<-2.0, 2.0>)}, {{"eps", 0.125}}};
    for (std::int64_t extra = next++ % most_operands; extra > 0; --extra)
      sample.operands.push_back(draw_tensor(rng, DType::f64, {shape.back()}, between<-2.0, 2.0>));
    samples.push_back(std::move(sample));
  }
  return samples;
}

/// Constant rows: no variance but eps.
std::vector<Sample> constant_rows(double number, double eps) {
  return {{{Tensor::of<double>({2}, {number, number})}, {{"eps", eps}}}};
}

}  // namespace

constinit const OpDef op_layer_norm{
    .name = "layer_norm",
    .summary = "(x - mean) / sqrt(variance + eps) along the last axis; optional operands scale, bias",
    .arity = Arity{1, 3},
    .infer = infer_norm,
    .evaluate = evaluate_norm<true>,
    .jacobian = norm_jacobian<true>,
    .cost = cost_norm<true>,
    .samples = [](Rng& rng) { return norm_samples(rng, 3); },
    .tolerance = Tolerance::function,
    .special_points = [](Rng&) { return constant_rows(1234, 0.25); },
    .onnx_name = "LayerNormalization",
    .expand = expand_norm<true>,
};

constinit const OpDef op_rms_norm{
    .name = "rms_norm",
    .summary = "x / sqrt(mean square + eps) along the last axis; optional operand scale",
    .arity = Arity{1, 2},
    .infer = infer_norm,
    .evaluate = evaluate_norm<false>,
    .jacobian = norm_jacobian<false>,
    .cost = cost_norm<false>,
    .samples = [](Rng& rng) { return norm_samples(rng, 2); },
    .tolerance = Tolerance::function,
    .special_points = [](Rng&) { return constant_rows(0, 0.25); },
    .onnx_name = "RMSNormalization",
    .expand = expand_norm<false>,
};

}  // namespace loipe::ops
