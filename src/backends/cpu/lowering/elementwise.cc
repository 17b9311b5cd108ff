// SPDX-License-Identifier: Apache-2.0
// Elementwise nodes become instructions of the open group over their shape.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "backends/cpu/lowering/op_lowerings.h"

namespace loipe::cpu {

namespace {

/// What one op becomes, for floating and for bool operands.
struct ElementwiseKernels {
  std::optional<Opcode> floating, boolean;
};

const std::unordered_map<std::string_view, ElementwiseKernels>& kernels_by_op() {
  static const auto table = [] {
    std::unordered_map<std::string_view, ElementwiseKernels> kernels;
    // The opcodes of floating ops have the names of the ops.
#define LOIPE_OPCODE(name, operands) \
  if (Opcode::name > Opcode::copy && Opcode::name <= Opcode::select) kernels[#name].floating = Opcode::name;
#include "backends/cpu/kernels/opcodes.def"
#undef LOIPE_OPCODE
    kernels["not"].boolean = Opcode::bool_not;
    kernels["and"].boolean = Opcode::bool_and;
    kernels["or"].boolean = Opcode::bool_or;
    kernels["xor"].boolean = kernels["ne"].boolean = Opcode::bool_xor;
    kernels["eq"].boolean = Opcode::bool_equal;
    kernels["select"].boolean = Opcode::bool_select;
    return kernels;
  }();
  return table;
}

/// Axis k of the operand runs with axis k of the result, or is broadcast.
Access broadcast_access(const Program& program, Value operand, const Shape& space) {
  const Shape& shape = program.shape(operand);
  Access access{operand, Integers(shape.size(), kNoAxis)};
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] == space[axis]) access.axis_of[axis] = static_cast<std::int64_t>(axis);
  return access;
}

std::vector<Slot> operand_slots(Lowering& lowering, Value node) {
  std::vector<Access> accesses;
  for (Value operand : lowering.program().operands(node))
    accesses.push_back(broadcast_access(lowering.program(), operand, lowering.program().shape(node)));
  return lowering.fusion().operands(lowering.program().shape(node), accesses);
}

/// Adds the one instruction of the node to the group.
void add_instruction(Lowering& lowering, Value node, Opcode opcode, bool is_f64) {
  const TensorType& type = lowering.program().type(node);
  const std::vector<Slot> sources = operand_slots(lowering, node);
  lowering.fusion().define(type.shape, node,
                           lowering.fusion().compute(type.shape, opcode, is_f64, type.dtype, sources));
}

}  // namespace

bool has_elementwise_kernel(const OpDef& op) { return kernels_by_op().contains(op.name.value); }

void lower_elementwise(Lowering& lowering, Value node) {
  const Program& program = lowering.program();
  const ElementwiseKernels& kernels = kernels_by_op().at(program.op(node).name.value);
  const DType dtype = program.type(program.operands(node).back()).dtype;
  const std::optional<Opcode> opcode = is_floating(dtype)        ? kernels.floating
                                       : dtype == DType::boolean ? kernels.boolean
                                                                 : std::nullopt;
  if (opcode) add_instruction(lowering, node, *opcode, dtype == DType::f64);
  else lowering.lower_in_memory(node, lower_by_reference);
}

/// x^y by squaring, the products in the order of the reference.
void lower_integer_pow(Lowering& lowering, Value node) {
  const Program& program = lowering.program();
  const TensorType& type = program.type(node);
  const std::int64_t y = program.attributes(node).integer("y");
  if (!is_floating(type.dtype) || y == 0) return lowering.lower_in_memory(node, lower_by_reference);
  Fusion& fusion = lowering.fusion();
  const auto compute = [&](Opcode opcode, std::initializer_list<Slot> sources) {
    return fusion.compute(type.shape, opcode, type.dtype == DType::f64, type.dtype,
                          std::span(sources.begin(), sources.size()));
  };
  Slot square = operand_slots(lowering, node)[0];
  std::optional<Slot> power;
  for (std::uint64_t n = y < 0 ? 0 - static_cast<std::uint64_t>(y) : static_cast<std::uint64_t>(y);;) {
    if (n & 1) power = power ? compute(Opcode::mul, {*power, square}) : square;
    if ((n >>= 1) == 0) break;
    square = compute(Opcode::mul, {square, square});
  }
  if (y < 0) {
    const StridedView one =
        lowering.constant(std::make_shared<const Tensor>(Tensor::scalar(1.0).converted(type.dtype)));
    power = compute(Opcode::div, {fusion.input(type.shape, along(one, type.shape, {})), *power});
  } else if (y == 1) {
    power = compute(Opcode::copy, {*power});
  }
  fusion.define(type.shape, node, *power);
}

namespace {

std::optional<Opcode> conversion(DType from, DType to) {
  if (is_floating(to)) {
    switch (from) {
      case DType::f32:
      case DType::f64: return Opcode::from_other_float;
      case DType::boolean: return Opcode::from_bool;
      case DType::i32: return Opcode::from_i32;
      case DType::i64: return Opcode::from_i64;
    }
  }
  if (to == DType::boolean && is_floating(from)) return Opcode::to_bool;
  return std::nullopt;
}

}  // namespace

void lower_convert(Lowering& lowering, Value node) {
  const Program& program = lowering.program();
  const DType from = program.type(program.operands(node)[0]).dtype, to = program.type(node).dtype;
  if (from == to) return lower_stop_gradient(lowering, node);
  const std::optional<Opcode> opcode = conversion(from, to);
  if (!opcode) return lowering.lower_in_memory(node, lower_by_reference);
  add_instruction(lowering, node, *opcode, to == DType::f64 || (to == DType::boolean && from == DType::f64));
}

/// Another name of the operand.
void lower_stop_gradient(Lowering& lowering, Value node) {
  const Value operand = lowering.program().operands(node)[0];
  if (lowering.fusion().is_pending(operand)) return lowering.fusion().define_as(node, operand);
  lowering.lower_in_memory(
      node, [](Lowering& l, Value same) { l.define(same, l.view(l.program().operands(same)[0])); });
}

}  // namespace loipe::cpu
