// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/op_lowerings.h"

#include <string_view>
#include <unordered_map>

#include "backends/cpu/steps/reference_step.h"
#include "ops/native.h"

namespace loipe::cpu {

namespace {

constexpr bool kAddsToGroup = true;

std::unordered_map<const OpDef*, OpLowering> make_lowerings() {
  std::unordered_map<const OpDef*, OpLowering> lowerings;
  const auto add = [&](std::string_view op, void (*function)(Lowering&, Value), bool adds_to_group = false) {
    lowerings.emplace(&find_op(op), OpLowering{function, adds_to_group});
  };
  for (const OpDef* op : all_ops())
    if (has_elementwise_kernel(*op)) add(op->name, lower_elementwise, kAddsToGroup);
  for (const OpDef* op : all_ops())
    if (ops::native_evaluation(*op) != nullptr) add(op->name, lower_natively);
  add("integer_pow", lower_integer_pow, kAddsToGroup);
  add("convert_element_type", lower_convert, kAddsToGroup);
  add("stop_gradient", lower_stop_gradient, kAddsToGroup);
  add("einsum", lower_einsum, kAddsToGroup);
  add("dot_general", lower_dot_general, kAddsToGroup);
  add("constant", lower_constant);
  add("iota", lower_iota);
  add("transpose", lower_transpose);
  add("reshape", lower_reshape);
  add("broadcast_in_dim", lower_broadcast);
  add("slice", lower_slice);
  add("after", lower_after);
  add("pad", lower_pad);
  add("concatenate", lower_concatenate);
  add("gather", lower_gather);
  add("scatter", lower_scatter);
  for (std::string_view op : {"reduce_sum", "reduce_max", "reduce_min"}) add(op, lower_reduce, kAddsToGroup);
  return lowerings;
}

}  // namespace

OpLowering lowering_of(const OpDef& op) {
  static const std::unordered_map<const OpDef*, OpLowering> lowerings = make_lowerings();
  const auto known = lowerings.find(&op);
  return known != lowerings.end() ? known->second : OpLowering{lower_by_reference};
}

void lower_by_reference(Lowering& lowering, Value node) {
  const Program& program = lowering.program();
  std::vector<StridedView> operands;
  for (Value operand : program.operands(node)) operands.push_back(lowering.contiguous(operand));
  const StridedView out = lowering.define_new(node);
  lowering.emit(make_reference_step(program.op(node), program.attributes(node), operands, out), operands,
                std::span(&out, 1));
}

}  // namespace loipe::cpu
