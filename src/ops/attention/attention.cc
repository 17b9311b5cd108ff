// SPDX-License-Identifier: Apache-2.0
// attention: operands, result and formulas in attention_call.h. Its local Jacobians are
// implicit: they multiply by attention_jvp and attention_vjp, in memory linear in the
// numbers of queries and keys.
#include "ops/attention/attention_nodes.h"
#include "ops/attention/attention_reference.h"
#include "ops/attention/attention_samples.h"
#include "ops/op_list.h"
#include "ops/shape_checks.h"

namespace loipe::ops {

namespace {

TensorType infer_attention(const InferContext& c) {
  expect_attributes(c, {"approximate", "bias", "causal", "mask", "scale", "window"});
  const AttentionCall call = AttentionCall::of(c.operands, c.attributes);
  if (c.operands.size() != call.primal_count)
    throw UserError(std::to_string(c.operands.size()) + " operands, expected " +
                    std::to_string(call.primal_count) +
                    "; the attributes mask and bias tell of further ones");
  return {call.dtype, call.result()};
}

Tensor evaluate_attention(const EvaluateContext& c) {
  const AttentionCall call = AttentionCall::of(types_of(c.operands), c.attributes);
  Tensor result(c.type);
  std::int64_t next = 0;
  for (std::int64_t head = 0; head < call.heads; ++head)
    for (std::int64_t group = 0; group < call.groups; ++group)
      for (double entry : AttentionHead(call, c.operands, head, group).result().entries)
        result.set(next++, entry);
  return result;
}

class AttentionJacobian final : public ImplicitJacobian {
 public:
  explicit AttentionJacobian(const JacobianContext& c)
      : nodes_(c, c.node), letter_(nodes_.call().letter_of(c.operand_index)) {}

  Value jvp(Builder& b, Value tangents) const override {
    return nodes_.jvp(b, std::string(1, letter_), std::span(&tangents, 1));
  }
  Value vjp(Builder& b, Value cotangents) const override {
    const std::string_view letters = AttentionNodes::together_with(letter_);
    return nodes_.part(b, nodes_.vjp(b, letters, cotangents), letters, letter_);
  }
  DType dtype() const override { return nodes_.dtype(); }
  /// Heads do not mix, and queries see one another's results nowhere.
  std::size_t tied_axes() const override {
    if (letter_ == 'q') return 3;
    return letter_ != 'b' || nodes_.call().bias_shape[0] == nodes_.call().heads ? 1 : 0;
  }
  std::int64_t multiplications() const override { return nodes_.multiplications(); }

 private:
  AttentionNodes nodes_;
  AttentionLetter letter_;
};

}  // namespace

constinit const OpDef op_attention{
    .name = "attention",
    .summary =
        "softmax(scale q k^T + bias) v, with the logarithms of the sums as last column; operands q, k, "
        "v, mask, bias",
    .arity = Arity{3, 5},
    .infer = infer_attention,
    .evaluate = evaluate_attention,
    .jacobian =
        [](JacobianContext& c) {
          if (c.type().element_count() == 0 || c.operand_type().element_count() == 0)
            return LocalJacobian::zero();
          return LocalJacobian{{}, std::make_shared<AttentionJacobian>(c)};
        },
    .cost =
        [](const CostContext& c) {
          const AttentionCall call = AttentionCall::of(c.operands, c.attributes);
          const std::int64_t pairs = call.pairs();
          return OpCost{.multiplications = pairs * (call.head_size + call.value_size),
                        .additions = pairs * (call.head_size + call.value_size),
                        .divisions = call.heads * call.groups * call.queries,
                        .functions = pairs};
        },
    .samples = attention_samples,
    .tolerance = Tolerance::function,
    .special_points = attention_special_points,
    .jax_name = "dot_product_attention",
    .onnx_name = "Attention",
};

}  // namespace loipe::ops
