// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <unordered_map>

#include "ir/op_def.h"
#include "ir/program.h"

namespace loipe {

/// Builds a program node by node, inferring and checking types. Every mistake is
/// a UserError that names the op and the operand types.
class Builder {
 public:
  explicit Builder(std::string name = "main") : program_(std::move(name)) {}
  /// Continues a program: its nodes keep their numbers, its outputs are cleared.
  explicit Builder(Program program);

  Value argument(std::string name, TensorType type);
  /// Equal constants are one node.
  Value constant(Tensor tensor);
  Value scalar(double value, DType dtype);

  Value emit(const OpDef& op, std::span<const Value> operands, const Attributes& attributes = {});
  Value emit(const OpDef& op, std::initializer_list<Value> operands, const Attributes& attributes = {}) {
    return emit(op, std::span<const Value>(operands.begin(), operands.size()), attributes);
  }
  Value emit(std::string_view op, std::initializer_list<Value> operands, const Attributes& attributes = {}) {
    return emit(find_op(op), operands, attributes);
  }

  const Program& program() const { return program_; }
  const TensorType& type(Value v) const { return program_.type(v); }
  const Shape& shape(Value v) const { return program_.shape(v); }

  /// The program with these outputs; the builder is empty afterwards.
  Program finish(std::vector<Value> outputs);

 private:
  Program program_;
  std::unordered_map<std::string, Value> constants_;
};

/// What an op's expansion sees: the operands of one of its nodes in the program that
/// grows, where it adds nodes and returns the one that stands for the op's.
struct ExpandContext {
  Builder& builder;
  std::span<const Value> operands;
  const Attributes& attributes;
};

/// The type of `op` on these operands; UserError that names the op otherwise.
TensorType infer_type(const OpDef& op, std::span<const TensorType* const> operands,
                      const Attributes& attributes);

}  // namespace loipe
