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

}  // namespace

void lower_reduce(Lowering& lowering, Value node) {
  const Program& program = lowering.program();
  if (!is_floating(program.type(node).dtype)) return lower_by_reference(lowering, node);
  const StridedView& view = lowering.view(program.operands(node)[0]);
  const Integers& axes = program.attributes(node).integers("axes");
  StridedView kept{view.buffer, view.dtype, view.offset, {}, {}}, reduced = kept;
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis) {
    StridedView& side = std::ranges::count(axes, static_cast<std::int64_t>(axis)) ? reduced : kept;
    side.shape.push_back(view.shape[axis]);
    side.strides.push_back(view.strides[axis]);
  }
  kept.shape.insert(kept.shape.end(), reduced.shape.begin(), reduced.shape.end());
  kept.strides.insert(kept.strides.end(), reduced.strides.begin(), reduced.strides.end());
  const StridedView out = lowering.define_new(node);
  lowering.emit(make_reduce_step(kept, out, reduction_of(program.op(node)), lowering.kernels()), {kept}, out);
}

}  // namespace loipe::cpu
