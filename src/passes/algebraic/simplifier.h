// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <optional>
#include <span>

#include "ir/op_def.h"
#include "passes/rebuild.h"
#include "passes/uniform_values.h"

namespace loipe::passes {

/// A node that is about to be written, on values of the new program.
struct Call {
  const OpDef& op;
  std::span<const Value> operands;
  const Attributes& attributes;
  const TensorType& type;
};

/// Writes a program in which no rule applies to any node: what a rule emits is
/// simplified in turn, so all operands a rule sees are in normal form.
class Simplifier {
 public:
  explicit Simplifier(const Program& source) : rebuild_(source) {}
  Program run();

  // For the rules. They see the new program so far.
  const Program& program() const { return rebuild_.target(); }
  const TensorType& type(Value v) const { return program().type(v); }
  const Shape& shape(Value v) const { return program().shape(v); }

  Value emit(const OpDef& op, std::initializer_list<Value> operands, const Attributes& attributes = {}) {
    return emit(op, std::span<const Value>(operands.begin(), operands.size()), attributes);
  }
  Value emit(const OpDef& op, std::span<const Value> operands, const Attributes& attributes = {});
  Value scalar(double value, DType dtype) { return rebuild_.scalar(value, dtype); }

  /// The value as an elementwise operand of a node of this shape is read: repeated
  /// along the axes that it lacks. Itself, when it lacks none.
  Value spread(Value v, const Shape& shape);

  /// The one number that the value holds everywhere, when that is known.
  std::optional<double> uniform(Value v) { return uniform_.of(program(), v); }
  bool is_uniform(Value v, double number) { return uniform(v) == number; }

  /// The operand of a node of this op with one operand.
  std::optional<Value> operand_if(Value v, const OpDef& op) const {
    if (&program().op(v) != &op) return std::nullopt;
    return program().operands(v)[0];
  }

 private:
  std::optional<Value> simplified(const Call& call);

  Rebuild rebuild_;
  UniformValues uniform_;
};

/// What a node may be replaced by, or nothing.
using Rule = std::optional<Value> (*)(Simplifier& simplifier, const Call& call);

struct RuleOfOp {
  const OpDef* op;
  Rule rule;
};

// All rules, at most one function for each op.
std::span<const RuleOfOp> arithmetic_rules();
std::span<const RuleOfOp> logic_rules();
std::span<const RuleOfOp> shape_rules();
std::span<const RuleOfOp> indexing_rules();
std::span<const RuleOfOp> einsum_rules();

}  // namespace loipe::passes
