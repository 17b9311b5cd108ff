// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/lowering/lowering.h"
#include "ir/op_def.h"

namespace loipe::cpu {

/// How the nodes of one op are lowered. Either the function adds the node to a
/// group and accounts for its operands' uses itself, or all operands are in memory
/// when it is called and it defines the node's value.
struct OpLowering {
  void (*function)(Lowering& lowering, Value node);
  bool adds_to_group = false;
};

/// True for ops that lower_elementwise serves.
bool has_elementwise_kernel(const OpDef& op);

/// Ops that are not in the list run by kernels of their own (ops/native.h), or else by their
/// reference evaluation.
OpLowering lowering_of(const OpDef& op);

// Elementwise: added to a group, or by reference evaluation for dtypes without kernels.
void lower_elementwise(Lowering& lowering, Value node);
void lower_integer_pow(Lowering& lowering, Value node);
void lower_convert(Lowering& lowering, Value node);
void lower_stop_gradient(Lowering& lowering, Value node);

// Views of the operand where possible.
void lower_transpose(Lowering& lowering, Value node);
void lower_reshape(Lowering& lowering, Value node);
void lower_after(Lowering& lowering, Value node);
void lower_broadcast(Lowering& lowering, Value node);
void lower_slice(Lowering& lowering, Value node);

// Copies.
void lower_pad(Lowering& lowering, Value node);
void lower_concatenate(Lowering& lowering, Value node);
void lower_gather(Lowering& lowering, Value node);
void lower_scatter(Lowering& lowering, Value node);

/// out, along the space of the operand, stands still on the axes that are reduced.
void emit_reduction(Lowering& lowering, const StridedView& operand, Reduction reduction,
                    const StridedView& out);

void lower_constant(Lowering& lowering, Value node);
void lower_iota(Lowering& lowering, Value node);
void lower_reduce(Lowering& lowering, Value node);
void lower_einsum(Lowering& lowering, Value node);
void lower_dot_general(Lowering& lowering, Value node);
void lower_natively(Lowering& lowering, Value node);
void lower_by_reference(Lowering& lowering, Value node);

}  // namespace loipe::cpu
