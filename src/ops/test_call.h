// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ir/builder.h"
#include "jacobian/local_jacobian.h"

// What the tests of ops share.

namespace loipe::testing {

/// One op on given operands, by its shape rule and its reference evaluation.
inline Tensor call(std::string_view name, const std::vector<Tensor>& operands,
                   const Attributes& attributes = {}) {
  const OpDef& op = find_op(name);
  std::vector<const TensorType*> types;
  std::vector<const Tensor*> values;
  for (const Tensor& operand : operands) {
    types.push_back(&operand.type());
    values.push_back(&operand);
  }
  const TensorType type = infer_type(op, types, attributes);
  return op.evaluate.value({values, attributes, type});
}

/// The message of the UserError that inferring the type throws, "" when it throws none.
inline std::string infer_error(std::string_view name, const std::vector<TensorType>& operands,
                               const Attributes& attributes = {}) {
  std::vector<const TensorType*> types;
  for (const TensorType& operand : operands) types.push_back(&operand);
  try {
    infer_type(find_op(name), types, attributes);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

/// The local Jacobian of a node by one operand.
inline LocalJacobian jacobian_by(Builder& builder, Value node, std::size_t operand_index) {
  JacobianContext context{builder, node, operand_index};
  return builder.program().op(node).jacobian.value.rule(context);
}

template <class T>
std::vector<T> elements(const Tensor& tensor) {
  const std::span<const T> view = tensor.elements<T>();
  return std::vector<T>(view.begin(), view.end());
}

}  // namespace loipe::testing
