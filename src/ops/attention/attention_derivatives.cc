// SPDX-License-Identifier: Apache-2.0
// attention_vjp, attention_jvp and the derivatives of these. Each is linear in its L
// directions; what it is linear in has the transposed map as derivative, and by the
// operands of attention the second derivative of attention appears, which is symmetric:
//
//   vjp(x; c) = J(x)^T c, jvp(x; t) = J(x) t,  d/dx <u, J(x)^T c> = d/dx <c, J(x) u> = vjp_jvp(x; c, u).
//
// The result of attention is an operand, so that it need not be computed again. It is a
// function of the others, so the derivative by it is none: theirs holds all.
#include "ops/attention/attention_nodes.h"
#include "ops/attention/attention_reference.h"
#include "ops/attention/attention_samples.h"
#include "ops/emit.h"
#include "ops/op_list.h"
#include "ops/shape_checks.h"

namespace loipe::ops {

namespace {

std::vector<Shape> shapes_of(const AttentionCall& call, std::string_view letters) {
  std::vector<Shape> shapes;
  for (AttentionLetter letter : letters) shapes.push_back(call.shape_of(letter));
  return shapes;
}

AttentionCall expect_primal(const InferContext& c) {
  const AttentionCall call = AttentionCall::of(c.operands, c.attributes);
  const TensorType result{call.dtype, call.result()};
  if (c.operands.size() <= call.primal_count || c.operand(call.primal_count) != result)
    throw UserError("operand " + std::to_string(call.primal_count) + ", the result of attention: expected " +
                    to_string(result));
  return call;
}

std::int64_t directions_of(const AttentionCall& call, const InferContext& c,
                           const std::vector<Shape>& shapes) {
  return expect_directions(c, call.primal_count + 1, shapes);
}

TensorType packed_type(const AttentionCall& call, std::int64_t directions, std::string_view letters) {
  return {call.dtype, {directions, call.elements(letters)}};
}

TensorType result_type(const AttentionCall& call, std::int64_t directions) {
  Shape shape = call.result();
  shape.insert(shape.begin(), directions);
  return {call.dtype, shape};
}

TensorType infer_vjp(const InferContext& c) {
  expect_attributes(c, {"approximate", "bias", "causal", "mask", "scale", "window", "by"});
  const AttentionCall call = expect_primal(c);
  return packed_type(call, directions_of(call, c, {call.result()}),
                     attention_letters(call, c.attributes, "by"));
}

TensorType infer_jvp(const InferContext& c) {
  expect_attributes(c, {"approximate", "bias", "causal", "mask", "scale", "window", "along"});
  const AttentionCall call = expect_primal(c);
  const std::vector<Shape> shapes = shapes_of(call, attention_letters(call, c.attributes, "along"));
  return result_type(call, directions_of(call, c, shapes));
}

TensorType infer_vjp_jvp(const InferContext& c) {
  expect_attributes(c, {"approximate", "bias", "causal", "mask", "scale", "window", "along", "by"});
  const AttentionCall call = expect_primal(c);
  std::vector<Shape> shapes = shapes_of(call, attention_letters(call, c.attributes, "along"));
  shapes.insert(shapes.begin(), call.result());
  return packed_type(call, directions_of(call, c, shapes), attention_letters(call, c.attributes, "by"));
}

TensorType infer_jvp_jvp(const InferContext& c) {
  expect_attributes(c, {"approximate", "bias", "causal", "mask", "scale", "window", "along", "along2"});
  const AttentionCall call = expect_primal(c);
  std::vector<Shape> shapes = shapes_of(call, attention_letters(call, c.attributes, "along"));
  for (Shape& shape : shapes_of(call, attention_letters(call, c.attributes, "along2")))
    shapes.push_back(std::move(shape));
  return result_type(call, directions_of(call, c, shapes));
}

/// The operands of one evaluation, and its result as it grows, in float64.
class Evaluation {
 public:
  explicit Evaluation(const EvaluateContext& c)
      : context_(c),
        call_(AttentionCall::of(types_of(c.operands), c.attributes)),
        sums_(static_cast<std::size_t>(c.type.element_count()), 0.0) {}

  const AttentionCall& call() const { return call_; }
  std::string letters(std::string_view name) const { return context_.attributes.text(name); }
  std::span<const Tensor* const> directions() const {
    return context_.operands.subspan(call_.primal_count + 1);
  }

  /// body(head, direction l) for every head of queries; it adds to the result.
  template <class Body>
  Tensor run(Body body) {
    for (std::int64_t head = 0; head < call_.heads; ++head)
      for (std::int64_t group = 0; group < call_.groups; ++group) {
        head_ = head, group_ = group;
        const AttentionHead at(call_, context_.operands, head, group);
        for (std::int64_t l = 0; l < context_.type.shape[0]; ++l) body(at, l);
      }
    Tensor result(context_.type);
    for (std::size_t i = 0; i < sums_.size(); ++i) result.set(static_cast<std::int64_t>(i), sums_[i]);
    return result;
  }

  void add_result(std::int64_t direction, const AttentionMatrix& result) {
    const std::int64_t head = (direction * call_.heads + head_) * call_.groups + group_;
    add(head * result.rows * result.columns, result);
  }

  void add_gradients(std::int64_t direction, const AttentionGradients& g, std::string_view by) {
    std::int64_t first = direction * call_.elements(by);
    for (AttentionLetter letter : by) {
      if (letter == 'q') add(first + (head_ * call_.groups + group_) * call_.queries * call_.head_size, g.q);
      if (letter == 'k') add(first + head_ * call_.keys * call_.head_size, g.k);
      if (letter == 'v') add(first + head_ * call_.keys * call_.value_size, g.v);
      if (letter == 'b') add_bias(first, g.bias);
      first += element_count(call_.shape_of(letter));
    }
  }

 private:
  void add(std::int64_t first, const AttentionMatrix& matrix) {
    for (std::size_t i = 0; i < matrix.entries.size(); ++i)
      sums_[static_cast<std::size_t>(first) + i] += matrix.entries[i];
  }
  void add_bias(std::int64_t first, const AttentionMatrix& matrix) {
    const Shape& s = call_.bias_shape;
    for (std::int64_t i = 0; i < matrix.rows; ++i)
      for (std::int64_t j = 0; j < matrix.columns; ++j)
        sums_[static_cast<std::size_t>(
            first + (((head_ % s[0]) * s[1] + group_ % s[1]) * s[2] + i % s[2]) * s[3] + j)] +=
            matrix.at(i, j);
  }

  const EvaluateContext& context_;
  AttentionCall call_;
  std::int64_t head_ = 0, group_ = 0;
  std::vector<double> sums_;
};

Tensor evaluate_vjp(const EvaluateContext& c) {
  Evaluation e(c);
  const std::string by = e.letters("by");
  return e.run([&](const AttentionHead& head, std::int64_t l) {
    e.add_gradients(l, head.vjp(head.cotangents(*e.directions()[0], l)), by);
  });
}

Tensor evaluate_jvp(const EvaluateContext& c) {
  Evaluation e(c);
  const std::string along = e.letters("along");
  return e.run([&](const AttentionHead& head, std::int64_t l) {
    e.add_result(l, head.jvp(head.tangents(e.directions(), along, l)));
  });
}

Tensor evaluate_vjp_jvp(const EvaluateContext& c) {
  Evaluation e(c);
  const std::string by = e.letters("by"), along = e.letters("along");
  return e.run([&](const AttentionHead& head, std::int64_t l) {
    const AttentionMatrix cotangents = head.cotangents(*e.directions()[0], l);
    e.add_gradients(l, head.vjp_jvp(cotangents, head.tangents(e.directions().subspan(1), along, l)), by);
  });
}

Tensor evaluate_jvp_jvp(const EvaluateContext& c) {
  Evaluation e(c);
  const std::string along = e.letters("along"), along2 = e.letters("along2");
  return e.run([&](const AttentionHead& head, std::int64_t l) {
    e.add_result(l, head.jvp_jvp(head.tangents(e.directions(), along, l),
                                 head.tangents(e.directions().subspan(along.size()), along2, l)));
  });
}

/// What the Jacobians of attention_vjp and attention_jvp share.
class DerivativeJacobian : public ImplicitJacobian {
 public:
  explicit DerivativeJacobian(const JacobianContext& c)
      : nodes_(c, c.operand(attention_call_of(c).primal_count)),
        directions_(c.type().shape[0]),
        position_(c.operand_index) {
    for (std::size_t i = nodes_.call().primal_count + 1; i < c.operand_count(); ++i)
      seeds_.push_back(c.operand(i));
  }
  DType dtype() const override { return nodes_.dtype(); }
  std::int64_t multiplications() const override { return 2 * directions_ * nodes_.multiplications(); }

 protected:
  bool is_by_primal() const { return position_ < nodes_.call().primal_count; }
  AttentionLetter letter() const { return nodes_.call().letter_of(position_); }
  std::vector<Value> seeds_for(Builder& b, std::int64_t outer) const {
    std::vector<Value> result;
    for (Value seed : seeds_) result.push_back(repeated_before(b, seed, outer));
    return result;
  }
  /// [K L, ...] summed over l: [K, ...].
  Value summed(Builder& b, Value x, std::int64_t outer) const {
    const Value split = split_directions(b, x, outer);
    if (directions_ != 1) return reduce_sum(b, split, {1});
    Shape shape = b.shape(split);
    shape.erase(shape.begin() + 1);
    return reshape(b, split, shape);
  }
  /// d/dx <u_k, derivative>, x the operand: the second derivative of attention by it.
  Value second_vjp(Builder& b, std::string_view along, Value cotangents, std::span<const Value> tangents,
                   std::int64_t outer) const {
    const std::string_view by = AttentionNodes::together_with(letter());
    const Value packed = nodes_.vjp_jvp(b, by, along, cotangents, tangents);
    return summed(b, nodes_.part(b, packed, by, letter()), outer);
  }

  AttentionNodes nodes_;
  std::int64_t directions_;  ///< L
  std::size_t position_;     ///< of the operand
  std::vector<Value> seeds_;
};

class VjpJacobian final : public DerivativeJacobian {
 public:
  explicit VjpJacobian(const JacobianContext& c) : DerivativeJacobian(c), by_(c.attributes().text("by")) {}

  Value jvp(Builder& b, Value tangents) const override {
    const std::int64_t outer = b.shape(tangents)[0];
    if (!is_by_primal())
      return split_directions(b, nodes_.vjp(b, by_, joined_directions(b, tangents)), outer);
    const Value repeated = repeated_behind(b, tangents, directions_);
    const Value packed =
        nodes_.vjp_jvp(b, by_, std::string(1, letter()), seeds_for(b, outer)[0], std::span(&repeated, 1));
    return split_directions(b, packed, outer);
  }

  Value vjp(Builder& b, Value cotangents) const override {
    const std::int64_t outer = b.shape(cotangents)[0];
    const std::vector<Value> parts = nodes_.parts(b, joined_directions(b, cotangents), by_);
    if (!is_by_primal()) return split_directions(b, nodes_.jvp(b, by_, parts), outer);
    return second_vjp(b, by_, seeds_for(b, outer)[0], parts, outer);
  }

 private:
  std::string by_;
};

class JvpJacobian final : public DerivativeJacobian {
 public:
  explicit JvpJacobian(const JacobianContext& c)
      : DerivativeJacobian(c), along_(c.attributes().text("along")) {}

  Value jvp(Builder& b, Value tangents) const override {
    const std::int64_t outer = b.shape(tangents)[0];
    if (!is_by_primal()) {
      const Value joined = joined_directions(b, tangents);
      return split_directions(b, nodes_.jvp(b, own(), std::span(&joined, 1)), outer);
    }
    const Value repeated = repeated_behind(b, tangents, directions_);
    return split_directions(
        b, nodes_.jvp_jvp(b, along_, std::string(1, letter()), seeds_for(b, outer), std::span(&repeated, 1)),
        outer);
  }

  Value vjp(Builder& b, Value cotangents) const override {
    const std::int64_t outer = b.shape(cotangents)[0];
    const Value joined = joined_directions(b, cotangents);
    if (is_by_primal()) return second_vjp(b, along_, joined, seeds_for(b, outer), outer);
    const std::string_view letters = AttentionNodes::together_with(own()[0]);
    return split_directions(b, nodes_.part(b, nodes_.vjp(b, letters, joined), letters, own()[0]), outer);
  }

 private:
  /// The letter of the tangents that are the operand.
  std::string_view own() const {
    return std::string_view(along_).substr(position_ - nodes_.call().primal_count - 1, 1);
  }
  std::string along_;
};

template <class Jacobian>
LocalJacobian derivative_jacobian(JacobianContext& c) {
  const bool is_by_result = c.operand_index == attention_call_of(c).primal_count;
  if (is_by_result || c.type().element_count() == 0 || c.operand_type().element_count() == 0)
    return LocalJacobian::zero();
  return {{}, std::make_shared<Jacobian>(c)};
}

constexpr Differentiation kNoThirdDerivative = Differentiation::none(
    "it is a second derivative of attention, of which none is implemented; write attention in products and "
    "softmax for third derivatives");

/// `products` of matrices over queries and keys for each direction, and what softmax takes.
template <std::int64_t products>
OpCost cost_derivative(const CostContext& c) {
  const AttentionCall call = AttentionCall::of(c.operands, c.attributes);
  const std::int64_t pairs = call.pairs() * c.type.shape[0], sizes = call.head_size + call.value_size;
  return {.multiplications = products * pairs * sizes / 2,
          .additions = products * pairs * sizes / 2,
          .functions = pairs};
}

std::vector<Sample> vjp_samples(Rng& rng) {
  std::vector<Sample> samples;
  for (EvaluatedAttention& at : evaluated_attention_samples(rng)) {
    at.sample.attributes.set("by", std::string(at.call.bias ? "b" : "qkv"));
    at.add_directions(rng, at.call.heads, at.call.result());
    samples.push_back(std::move(at.sample));
  }
  return samples;
}

std::vector<Sample> tangent_samples(Rng& rng, bool has_cotangents, std::string_view second) {
  std::vector<Sample> samples;
  for (EvaluatedAttention& at : evaluated_attention_samples(rng)) {
    const std::string along = at.call.bias ? "b" : "qkv", other = "k";
    if (has_cotangents) at.add_directions(rng, at.call.heads, at.call.result());
    for (AttentionLetter letter : along) at.add_directions(rng, at.call.heads, at.call.shape_of(letter));
    at.sample.attributes.set("along", along);
    if (second == "by") at.sample.attributes.set("by", std::string("qkv"));
    if (second == "along2") {
      at.sample.attributes.set("along2", other);
      at.add_directions(rng, at.call.heads, at.call.shape_of('k'));
    }
    samples.push_back(std::move(at.sample));
  }
  return samples;
}

}  // namespace

constinit const OpDef op_attention_vjp{
    .name = "attention_vjp",
    .summary = "the product of cotangents with the Jacobian of attention by the operands that `by` names",
    .arity = Arity{5, 7},
    .infer = infer_vjp,
    .evaluate = evaluate_vjp,
    .jacobian = derivative_jacobian<VjpJacobian>,
    .cost = cost_derivative<5>,
    .samples = vjp_samples,
    .tolerance = Tolerance::function,
};

constinit const OpDef op_attention_jvp{
    .name = "attention_jvp",
    .summary = "the product of the Jacobian of attention with tangents of the operands that `along` names",
    .arity = Arity{5, 9},
    .infer = infer_jvp,
    .evaluate = evaluate_jvp,
    .jacobian = derivative_jacobian<JvpJacobian>,
    .cost = cost_derivative<6>,
    .samples = [](Rng& rng) { return tangent_samples(rng, false, ""); },
    .tolerance = Tolerance::function,
};

constinit const OpDef op_attention_vjp_jvp{
    .name = "attention_vjp_jvp",
    .summary = "the derivative of attention_vjp along tangents of the operands that `along` names",
    .arity = Arity{6, 10},
    .infer = infer_vjp_jvp,
    .evaluate = evaluate_vjp_jvp,
    .jacobian = kNoThirdDerivative,
    .cost = cost_derivative<12>,
    .samples = [](Rng& rng) { return tangent_samples(rng, true, "by"); },
    .tolerance = Tolerance::function,
};

constinit const OpDef op_attention_jvp_jvp{
    .name = "attention_jvp_jvp",
    .summary = "the derivative of attention_jvp along tangents of the operands that `along2` names",
    .arity = Arity{6, 12},
    .infer = infer_jvp_jvp,
    .evaluate = evaluate_jvp_jvp,
    .jacobian = kNoThirdDerivative,
    .cost = cost_derivative<10>,
    .samples = [](Rng& rng) { return tangent_samples(rng, false, "along2"); },
    .tolerance = Tolerance::function,
};

}  // namespace loipe::ops
