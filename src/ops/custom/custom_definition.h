// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>

#include "ir/op_def.h"
#include "jacobian/local_jacobian.h"

namespace loipe {

/// A user-defined op (include/loipe/custom_op.h). In a program it is a node of the op
/// `custom`, whose attribute `op` is the name, so that programs print and parse; the list
/// of definitions gives the name its meaning.
struct CustomDefinition {
  std::string name;
  std::size_t operand_count = 1;
  std::function<TensorType(std::span<const TensorType>)> infer;
  std::function<Tensor(std::span<const Tensor* const>)> evaluate;
  /// Empty: the op has no derivative.
  std::function<LocalJacobian(JacobianContext&)> jacobian;
};

/// Adds a definition to the list of this process, where it stays; from any thread.
/// UserError when there is one of that name.
void define_custom_op(CustomDefinition definition);

/// UserError that suggests the nearest name when there is none.
const CustomDefinition& find_custom_op(std::string_view name);

}  // namespace loipe
