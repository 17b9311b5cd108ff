// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "ir/op_def.h"
#include "ir/program.h"

namespace loipe {

/// What every pass is made of: it walks the nodes of a program in order and says
/// for each one which value of a new program stands for it, a copy of the node or
/// another value. Equal rank-0 constants, copied or new, become one node.
class Rebuild {
 public:
  explicit Rebuild(const Program& source);

  const Program& source() const { return source_; }
  const Program& target() const { return target_; }

  /// The value of the new program that stands for this one of the source.
  Value of(Value old) const;
  /// Those that stand for the operands of a node; valid until the next call.
  std::span<const Value> operands_of(Value old);

  /// Copies a node, on the values that stand for its operands.
  Value copy(Value old);
  /// Lets a value of the new program stand for this node.
  Value replace(Value old, Value now);

  /// A new node; its type is inferred.
  Value emit(const OpDef& op, std::span<const Value> operands, const Attributes& attributes = {});
  Value emit(const OpDef& op, std::initializer_list<Value> operands, const Attributes& attributes = {}) {
    return emit(op, std::span<const Value>(operands.begin(), operands.size()), attributes);
  }
  Value constant(Tensor tensor);
  Value scalar(double value, DType dtype);

  /// The new program; its outputs stand for those of the source.
  Program finish();

 private:
  using ScalarKey = std::pair<DType, std::uint64_t>;
  static ScalarKey scalar_key(const Tensor& tensor);
  Value add_constant(const Attributes& attributes, const TensorType& type);

  const Program& source_;
  Program target_;
  std::vector<Value> replacement_;
  std::vector<Value> operands_;
  std::map<ScalarKey, Value> scalars_;
};

inline bool is_argument(const Program& program, Value v) { return &program.op(v) == &argument_op(); }
inline bool is_constant(const Program& program, Value v) { return &program.op(v) == &constant_op(); }

/// For each node, whether an output needs it.
std::vector<bool> live_nodes(const Program& program);

}  // namespace loipe
