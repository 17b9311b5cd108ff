// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/op_lowerings.h"
#include "backends/cpu/steps/native_step.h"

namespace loipe::cpu {

namespace {

std::vector<const TensorType*> operand_types(const Program& program, Value node) {
  std::vector<const TensorType*> types;
  for (Value operand : program.operands(node)) types.push_back(&program.type(operand));
  return types;
}

}  // namespace

void lower_natively(Lowering& lowering, Value node) {
  const Program& program = lowering.program();
  const ops::NativeEvaluation* native = ops::native_evaluation(program.op(node));
  const std::vector<const TensorType*> types = operand_types(program, node);
  const CostContext context{types, program.attributes(node), program.type(node)};
  if (!native->covers(context)) return lower_by_reference(lowering, node);
  NativeCall call{
      native, program.attributes(node), {}, {}, {}, {}, lowering.is_tile() ? 1 : lowering.threads()};
  for (std::size_t i = 0; i < types.size(); ++i) {
    const Value operand = program.operands(node)[i];
    const bool as_it_is = native->takes_strides(context, i, lowering.view(operand).strides);
    call.operands.push_back(as_it_is ? lowering.view(operand) : lowering.contiguous(operand));
    call.operands_beside.push_back(lowering.beside(operand));
  }
  call.out = lowering.define_new(node);
  std::vector<StridedView> reads = call.operands, writes{call.out};
  for (const auto& beside : call.operands_beside)
    if (beside) reads.push_back(*beside);
  if (const auto bytes = static_cast<std::int64_t>(native->beside_bytes(context)); bytes > 0) {
    call.beside = lowering.temporary(DType::f32, {(bytes + 3) / 4});
    lowering.set_beside(node, *call.beside);
    writes.push_back(*call.beside);
  }
  lowering.emit(make_native_step(std::move(call)), reads, writes);
}

}  // namespace loipe::cpu
