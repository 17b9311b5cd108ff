// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backends/cpu/lowering/op_lowerings.h"
#include "backends/cpu/steps/reduce_step.h"

namespace loipe::cpu {

namespace {

Reduction reduction_of(const OpDef& op) {
  return op.name.value == "reduce_sum"   ? Reduction::sum
         : op.name.value == "reduce_max" ? Reduction::max
                                         : Reduction::min;
}

void lower_reduce_in_memory(Lowering& lowering, Value node) {
  const Program& program = lowering.program();
  const StridedView operand = lowering.view(program.operands(node)[0]);
  const Integers& axes = program.attributes(node).integers("axes");
  Integers kept;
  for (std::size_t axis = 0; axis < operand.shape.size(); ++axis)
    if (std::ranges::count(axes, static_cast<std::int64_t>(axis)) == 0)
      kept.push_back(static_cast<std::int64_t>(axis));
  const StridedView out = lowering.define_new(node);
  emit_reduction(lowering, operand, reduction_of(program.op(node)), along(out, operand.shape, kept));
}

}  // namespace

void emit_reduction(Lowering& lowering, const StridedView& operand, Reduction reduction,
                    const StridedView& out) {
  StridedView kept{operand.buffer, operand.dtype, operand.offset, {}, {}}, reduced = kept;
  StridedView result{out.buffer, out.dtype, out.offset, {}, {}};
  for (std::size_t axis = 0; axis < operand.shape.size(); ++axis) {
    const bool is_kept = out.strides[axis] != 0;
    StridedView& side = is_kept ? kept : reduced;
    side.shape.push_back(operand.shape[axis]);
    side.strides.push_back(operand.strides[axis]);
    if (!is_kept) continue;
    result.shape.push_back(operand.shape[axis]);
    result.strides.push_back(out.strides[axis]);
  }
  kept.shape.insert(kept.shape.end(), reduced.shape.begin(), reduced.shape.end());
  kept.strides.insert(kept.strides.end(), reduced.strides.begin(), reduced.strides.end());
  lowering.emit(make_reduce_step(kept, result, reduction, lowering.kernels()), {operand}, result);
}

void lower_reduce(Lowering& lowering, Value node) {
  const Program& program = lowering.program();
  if (!is_floating(program.type(node).dtype)) return lowering.lower_in_memory(node, lower_by_reference);
  const Integers& axes = program.attributes(node).integers("axes");
  if (!lowering.fusion().reduce(node, program.operands(node)[0], reduction_of(program.op(node)), axes))
    lowering.lower_in_memory(node, lower_reduce_in_memory);
}

}  // namespace loipe::cpu
