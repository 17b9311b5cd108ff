// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/group_body.h"

#include <optional>

namespace loipe::cpu {

using kernel::Id;
using kernel::Kind;
using kernel::Node;
using scalar::Op;

namespace {

/// The scalar op of the same meaning.
std::optional<Op> scalar_op(Opcode opcode) {
  switch (opcode) {
#define LOIPE_SAME(name) \
  case Opcode::name: return Op::name;
    LOIPE_SAME(neg)
    LOIPE_SAME(abs)
    LOIPE_SAME(floor)
    LOIPE_SAME(ceil)
    LOIPE_SAME(round)
    LOIPE_SAME(sqrt)
    LOIPE_SAME(cbrt)
    LOIPE_SAME(exp)
    LOIPE_SAME(exp2)
    LOIPE_SAME(expm1)
    LOIPE_SAME(log)
    LOIPE_SAME(log1p)
    LOIPE_SAME(sin)
    LOIPE_SAME(cos)
    LOIPE_SAME(tan)
    LOIPE_SAME(asin)
    LOIPE_SAME(acos)
    LOIPE_SAME(atan)
    LOIPE_SAME(sinh)
    LOIPE_SAME(cosh)
    LOIPE_SAME(tanh)
    LOIPE_SAME(asinh)
    LOIPE_SAME(acosh)
    LOIPE_SAME(atanh)
    LOIPE_SAME(erf)
    LOIPE_SAME(erfc)
    LOIPE_SAME(add)
    LOIPE_SAME(sub)
    LOIPE_SAME(mul)
    LOIPE_SAME(div)
    LOIPE_SAME(pow)
    LOIPE_SAME(atan2)
    LOIPE_SAME(max)
    LOIPE_SAME(min)
    LOIPE_SAME(eq)
    LOIPE_SAME(ne)
    LOIPE_SAME(lt)
    LOIPE_SAME(le)
    LOIPE_SAME(gt)
    LOIPE_SAME(ge)
    LOIPE_SAME(select)
#undef LOIPE_SAME
    case Opcode::bool_not: return Op::logical_not;
    case Opcode::bool_and: return Op::logical_and;
    case Opcode::bool_or: return Op::logical_or;
    case Opcode::bool_xor: return Op::logical_xor;
    case Opcode::bool_select: return Op::select;
    default: return std::nullopt;
  }
}

}  // namespace

GroupBody::GroupBody(const MapGroup& group, kernel::Kernel& kernel, std::function<Id(Slot)> load)
    : group_(group),
      kernel_(kernel),
      load_(std::move(load)),
      definition_(group.slots.size(), -1),
      values_(group.slots.size(), kNone) {
  for (std::size_t i = 0; i < group.code.size(); ++i)
    definition_[group.code[i].result] = static_cast<std::int64_t>(i);
}

/// Depth first without recursion: a slot stays on the stack until its sources are there.
bool GroupBody::compute(Slot wanted) {
  std::vector<Slot> stack{wanted};
  while (!stack.empty()) {
    const Slot slot = stack.back();
    if (values_[slot] != kNone) {
      stack.pop_back();
    } else if (definition_[slot] < 0) {
      values_[slot] = node({Kind::load, group_.slots[slot].dtype, Op::add, {load_(slot)}});
    } else {
      const MapInstruction& instruction = group_.code[static_cast<std::size_t>(definition_[slot])];
      const std::size_t depth = stack.size();
      for (std::size_t k = 3; k-- > 0;)
        if (values_[instruction.sources[k]] == kNone) stack.push_back(instruction.sources[k]);
      if (stack.size() == depth && !append(instruction)) return false;
    }
  }
  return true;
}

Id GroupBody::node(const Node& node) {
  kernel_.body.push_back(node);
  return static_cast<Id>(kernel_.body.size() - 1);
}
Id GroupBody::scalar(Op op, DType dtype, Id a, Id b, Id c) {
  const int arity = scalar::arity(op);
  return node({Kind::scalar, dtype, op, {a, arity > 1 ? b : 0, arity > 2 ? c : 0}});
}
Id GroupBody::constant(DType dtype, double value) {
  return node({Kind::constant, dtype, Op::add, {}, value});
}

bool GroupBody::append(const MapInstruction& instruction) {
  const DType dtype = group_.slots[instruction.result].dtype;
  if (const std::optional<Op> op = scalar_op(instruction.opcode)) {
    values_[instruction.result] =
        scalar(*op, dtype, source(instruction, 0), source(instruction, 1), source(instruction, 2));
    return true;
  }
  return append_conversion(instruction) || append_compound(instruction, dtype);
}

bool GroupBody::append_conversion(const MapInstruction& instruction) {
  const Id x = source(instruction, 0);
  switch (instruction.opcode) {
    case Opcode::copy:
    case Opcode::bool_copy: values_[instruction.result] = x; return true;
    case Opcode::from_other_float:
    case Opcode::from_bool:
    case Opcode::from_i32:
    case Opcode::from_i64:
    case Opcode::to_bool:
      values_[instruction.result] =
          node({Kind::convert, group_.slots[instruction.result].dtype, Op::add, {x}});
      return true;
    default: return false;
  }
}

/// Opcodes that are several scalar ops.
bool GroupBody::append_compound(const MapInstruction& instruction, DType dtype) {
  const Id x = source(instruction, 0), y = source(instruction, 1);
  Id result = kNone;
  switch (instruction.opcode) {
    case Opcode::sign: {
      const Id zero = constant(dtype, 0);
      const Id negative =
          scalar(Op::select, dtype, scalar(Op::lt, DType::boolean, x, zero), constant(dtype, -1), x);
      result =
          scalar(Op::select, dtype, scalar(Op::gt, DType::boolean, x, zero), constant(dtype, 1), negative);
      break;
    }
    case Opcode::rsqrt:
      result = scalar(Op::div, dtype, constant(dtype, 1), scalar(Op::sqrt, dtype, x));
      break;
    case Opcode::logistic: {
      const Id one = constant(dtype, 1);
      const Id e = scalar(Op::exp, dtype, scalar(Op::neg, dtype, x));
      result = scalar(Op::div, dtype, one, scalar(Op::add, dtype, one, e));
      break;
    }
    case Opcode::masked: result = scalar(Op::select, dtype, x, y, constant(dtype, 0)); break;
    case Opcode::bool_equal:
      result = scalar(Op::logical_not, dtype, scalar(Op::logical_xor, dtype, x, y));
      break;
    default: return false;
  }
  values_[instruction.result] = result;
  return true;
}

}  // namespace loipe::cpu
