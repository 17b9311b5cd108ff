// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/trace.h>

#include <string>

#include "jacobian/local_jacobian.h"

namespace loipe {

/// A local Jacobian rule that is given as a traced function of the node's operands and its
/// result: what the function records is copied into the node's program.
class TracedRule {
 public:
  /// `owner` names the rule in messages: "custom op 'f'".
  TracedRule(JacobianContext& context, std::string owner);

  /// -> the partial of an elementwise op by each floating operand.
  LocalJacobian from_partials(const TracedFunction& partials);
  /// -> d result / d operand for each floating operand, of shape result + operand.
  LocalJacobian from_blocks(const TracedFunction& blocks);
  /// and a tangent for each floating operand -> the tangent of the result. A linear map is
  /// its own Jacobian, so this is the Jacobian of that function by the operand's tangent.
  LocalJacobian from_jvp(const TracedFunction& jvp);
  /// and a cotangent of the result -> the cotangent of each floating operand: the transpose.
  LocalJacobian from_vjp(const TracedFunction& vjp);

 private:
  Program traced(const TracedFunction& function, const std::vector<TensorType>& directions,
                 const std::vector<TensorType>& results) const;
  LocalJacobian linear_map(Program program, std::size_t output, std::size_t direction, bool is_transposed);
  Value copied(const Program& program, Value value) const;

  JacobianContext& context_;
  std::string owner_;
  std::vector<TensorType> floating_;  ///< types of the floating operands
  std::size_t position_ = 0;          ///< which of them the context's operand is
};

}  // namespace loipe
