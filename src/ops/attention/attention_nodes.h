// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jacobian/local_jacobian.h"
#include "ops/attention/attention_call.h"

// What local Jacobians of attention ops emit. "Packed" are the derivatives by several
// operands, one after the other and flattened: [L, elements].

namespace loipe::ops {

/// Shapes and attributes of the node that is differentiated.
AttentionCall attention_call_of(const JacobianContext& c);

/// Attention at certain operands, in the program under construction.
class AttentionNodes {
 public:
  /// Of a node of any attention op, whose first operands are those of attention itself. `result` is the value
  /// of attention at them.
  AttentionNodes(const JacobianContext& c, Value result);

  const AttentionCall& call() const { return call_; }
  DType dtype() const { return call_.dtype; }
  /// What one direction of any of these costs, about.
  std::int64_t multiplications() const { return 2 * call_.pairs() * (call_.head_size + call_.value_size); }

  /// Cotangents [L, result...] to packed derivatives by the letters.
  Value vjp(Builder& b, std::string_view by, Value cotangents) const;
  /// Tangents [L, operand...], one per letter, to [L, result...].
  Value jvp(Builder& b, std::string_view along, std::span<const Value> tangents) const;
  /// The derivative of vjp(by, cotangents) along tangents, packed.
  Value vjp_jvp(Builder& b, std::string_view by, std::string_view along, Value cotangents,
                std::span<const Value> tangents) const;
  /// The derivative of jvp(along, tangents) along second tangents, [L, result...].
  Value jvp_jvp(Builder& b, std::string_view along, std::string_view along2, std::span<const Value> tangents,
                std::span<const Value> tangents2) const;

  /// All letters of which derivatives are computed together with this one.
  static std::string_view together_with(AttentionLetter letter) { return letter == 'b' ? "b" : "qkv"; }
  /// [L, elements of letters] to [L, operand...].
  Value part(Builder& b, Value packed, std::string_view letters, AttentionLetter letter) const;
  std::vector<Value> parts(Builder& b, Value packed, std::string_view letters) const;

 private:
  Value emit(Builder& b, const OpDef& op, std::span<const Value> directions,
             std::initializer_list<Attributes::Entry> more) const;

  AttentionCall call_;
  std::vector<Value> primal_;  ///< q, k, v, mask, bias, and the result of attention
  Attributes attributes_;
};

/// [K, L, ...] as [K L, ...].
Value joined_directions(Builder& b, Value x);
/// [K L, ...] as [K, L, ...].
Value split_directions(Builder& b, Value x, std::int64_t outer);
/// [L, ...] repeated to [K L, ...] in front, or [K, ...] to [K L, ...] behind its first axis.
Value repeated_before(Builder& b, Value x, std::int64_t outer);
Value repeated_behind(Builder& b, Value x, std::int64_t inner);

}  // namespace loipe::ops
