// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/derivative.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/pipeline.h"

namespace loipe {

/// Which derivative of a program, by and of what, and what else is returned.
struct DerivativeRequest {
  DerivativeKind kind = DerivativeKind::jacobian;
  std::vector<std::size_t> wrt;  ///< arguments, in the order of the blocks
  std::vector<std::size_t> of;   ///< outputs, in the order of the blocks; the others are only computed
  /// For jvp, vjp and hvp: how many directions at once; absent: one, without an axis.
  std::optional<std::int64_t> directions = {};
  /// For jacobian: the arguments that carry the program's own batch axis, see AccumulationRequest.
  std::vector<bool> batched = {};
  EliminationOrder order = {};    ///< of `differentiated(program)`
  std::string outer_order = {};   ///< hessian and hvp: of the Jacobian's program; empty: the cheapest
  bool returns_values = true;     ///< of all outputs; else of those that are not in `of`
  bool returns_jacobian = false;  ///< hessian and hvp: of the Jacobian too
};

/// What differentiates twice: the flow applied to its own output.
bool is_second_order(DerivativeKind kind);
/// What multiplies the Jacobian with directions that are arguments.
bool has_directions(DerivativeKind kind);
/// "jvp"
std::string to_string(DerivativeKind kind);

/// The program with the outputs `of` alone: what orders are orders of. UserError for
/// positions that are no outputs or stand twice, and for the gradient of what is no number.
Program differentiated(const Program& primal, DerivativeKind kind, const std::vector<std::size_t>& of);

/// What the last accumulation works on: the program itself, or the optimised program of
/// its Jacobian.
struct DerivativePlan {
  Program program;
  AccumulationRequest request;
  ActualCost earlier;  ///< of the accumulation that made the program
};
DerivativePlan plan_derivative(const Program& primal, const DerivativeRequest& request,
                               const PassOptions& passes = {});

/// The flow for any derivative: plans, and compiles the last accumulation. Costs are those
/// of all accumulations; `folded` is what is executed beyond the function.
struct DerivativeCompilation {
  DerivativePlan plan;
  Compilation compilation;
};
DerivativeCompilation compile_derivative(const Program& primal, const DerivativeRequest& request,
                                         const CompileOptions& options, bool with_back_end = true);

/// Names and types of what goes in and comes out, for given types of the program's
/// arguments and outputs (a caller may not see all axes that the program has):
///   in   <argument>, then tangent.<argument> or cotangent.<output>
///   out  out.<output>, then
///        jac.<output>.<argument>               output + argument
///        jvp.<output>                          directions + output
///        vjp.<argument>, grad.<argument>       directions + argument, argument
///        hess.<output>.<argument>.<argument>   output + argument + argument
///        hvp.<output>.<argument>               directions + output + argument
struct NamedType {
  std::string name;
  TensorType type;
};
struct DerivativeSignature {
  std::vector<NamedType> inputs, results;
  std::size_t value_count = 0;     ///< results that are outputs
  std::size_t jacobian_count = 0;  ///< results after them that are blocks of a Jacobian on the way
};
DerivativeSignature signature_of(const DerivativeRequest& request, const Program& primal,
                                 std::span<const TensorType> arguments, std::span<const TensorType> outputs);

}  // namespace loipe
