// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/derivative.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op_def.h"
#include "ir/program.h"

namespace loipe {

/// One field of the matrix op x derivative x back end x dtype. It holds for every
/// elimination order.
struct OpSupport {
  DerivativeKind derivative;
  std::string_view backend;
  DType dtype;
  std::string why_not;  ///< empty where it is supported
};

/// The kinds that the matrix has; gradients and Hessian-vector products are made of them.
std::span<const DerivativeKind> matrix_kinds();

/// All fields of an op, found by differentiating and asking each back end: of a call that
/// it has among its samples, by all floating operands.
std::vector<OpSupport> op_support(const OpDef& op);

/// A sample in another floating dtype, attributes included.
Sample in_dtype(const Sample& sample, DType dtype);

/// A program around one call of the op: -x_k for floating operands, the call, twice its
/// result. So the call's edges are inside the graph, orders differ, and the derivatives are
/// exactly -2 (first) and 2 (second) times those of the call. Absent for an op that cannot
/// be called. Arguments are those of `arguments_around`.
std::optional<Program> program_around(const OpDef& op, const Sample& sample);
std::vector<Tensor> arguments_around(const Sample& sample);

}  // namespace loipe
