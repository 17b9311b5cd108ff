// SPDX-License-Identifier: Apache-2.0
#include "passes/expansion/expansion.h"

#include "ir/builder.h"

namespace loipe::passes {

namespace {

bool has_expansion(const Program& program) {
  for (std::uint32_t i = 0; i < program.size(); ++i)
    if (program.op(Value{i}).expand) return true;
  return false;
}

}  // namespace

Program expansion(const Program& program) {
  if (!has_expansion(program)) return program;
  Builder builder(program.name());
  std::vector<Value> now(program.size());
  std::size_t next_argument = 0;
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    const Value node{i};
    std::vector<Value> operands;
    for (Value operand : program.operands(node)) operands.push_back(now[operand.index]);
    const OpDef& op = program.op(node);
    if (&op == &argument_op())
      now[i] = builder.argument(program.argument_name(next_argument++), program.type(node));
    else if (&op == &constant_op()) now[i] = builder.constant(program.attributes(node).tensor("value"));
    else if (op.expand) now[i] = op.expand({builder, operands, program.attributes(node)});
    else now[i] = builder.emit(op, operands, program.attributes(node));
  }
  std::vector<Value> outputs;
  for (Value output : program.outputs()) outputs.push_back(now[output.index]);
  return builder.finish(std::move(outputs));
}

}  // namespace loipe::passes
