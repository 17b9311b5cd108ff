// SPDX-License-Identifier: Apache-2.0
#include "ir/interpreter.h"

#include "base/check.h"
#include "ir/op_def.h"

namespace loipe {

void check_arguments(const Program& program, std::span<const Tensor> arguments) {
  if (arguments.size() != program.arguments().size())
    throw UserError("program '" + program.name() + "' takes " + std::to_string(program.arguments().size()) +
                    " arguments, got " + std::to_string(arguments.size()));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const TensorType& wanted = program.type(program.arguments()[i]);
    if (arguments[i].type() != wanted)
      throw UserError("argument '" + program.argument_name(i) + "' is " + to_string(arguments[i].type()) +
                      ", expected " + to_string(wanted));
  }
}

Tensor evaluate_node(const Program& program, Value node, std::span<const Tensor* const> operands) {
  const OpDef& op = program.op(node);
  Tensor result = op.evaluate.value({operands, program.attributes(node), program.type(node)});
  require(result.type() == program.type(node), "evaluation of '" + std::string(op.name.value) +
                                                   "' returned " + to_string(result.type()) + " instead of " +
                                                   to_string(program.type(node)));
  return result;
}

namespace {

/// For each node, how often its value is still needed.
std::vector<std::uint32_t> use_counts(const Program& program) {
  std::vector<std::uint32_t> uses(program.size(), 0);
  for (std::uint32_t i = 0; i < program.size(); ++i)
    for (Value operand : program.operands(Value{i})) ++uses[operand.index];
  for (Value output : program.outputs()) ++uses[output.index];
  return uses;
}

}  // namespace

std::vector<Tensor> evaluate(const Program& program, std::span<const Tensor> arguments) {
  check_arguments(program, arguments);
  std::vector<std::uint32_t> uses = use_counts(program);
  std::vector<Tensor> values(program.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) values[program.arguments()[i].index] = arguments[i];
  std::vector<const Tensor*> operands;
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    if (&program.op(Value{i}) == &argument_op() || uses[i] == 0) continue;
    operands.clear();
    for (Value operand : program.operands(Value{i})) operands.push_back(&values[operand.index]);
    values[i] = evaluate_node(program, Value{i}, operands);
    for (Value operand : program.operands(Value{i}))
      if (--uses[operand.index] == 0) values[operand.index] = Tensor();
  }
  std::vector<Tensor> outputs;
  for (Value output : program.outputs()) outputs.push_back(values[output.index]);
  return outputs;
}

}  // namespace loipe
