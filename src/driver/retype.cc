// SPDX-License-Identifier: Apache-2.0
#include "driver/retype.h"

#include "ir/builder.h"
#include "ir/op_def.h"

namespace loipe {

namespace {

DType retyped(DType dtype, DType wanted) { return is_floating(dtype) ? wanted : dtype; }

Attributes retyped(const Attributes& attributes, DType wanted) {
  Attributes result;
  for (const auto& [name, value] : attributes.entries()) {
    if (const auto* dtype = std::get_if<DType>(&value)) {
      result.set(name, retyped(*dtype, wanted));
    } else if (const auto* tensor = std::get_if<std::shared_ptr<const Tensor>>(&value)) {
      const DType now = retyped((*tensor)->dtype(), wanted);
      result.set(name, std::make_shared<const Tensor>((*tensor)->converted(now)));
    } else {
      result.set(name, value);
    }
  }
  return result;
}

}  // namespace

Program retyped(const Program& program, DType dtype) {
  Builder builder(Program(program.name()));
  std::vector<Value> now(program.size());
  std::size_t position = 0;
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    const Value old{i};
    const TensorType& type = program.type(old);
    if (&program.op(old) == &argument_op()) {
      now[i] = builder.argument(program.argument_name(position++), {retyped(type.dtype, dtype), type.shape});
      continue;
    }
    std::vector<Value> operands;
    for (Value operand : program.operands(old)) operands.push_back(now[operand.index]);
    now[i] = builder.emit(program.op(old), operands, retyped(program.attributes(old), dtype));
  }
  std::vector<Value> outputs;
  for (Value output : program.outputs()) outputs.push_back(now[output.index]);
  return builder.finish(std::move(outputs));
}

bool mixes_precisions(const Program& program) {
  bool has_single = false, has_double = false;
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    const DType dtype = program.type(Value{i}).dtype;
    has_single |= dtype == DType::f32;
    has_double |= dtype == DType::f64;
  }
  return has_single && has_double;
}

}  // namespace loipe
