// SPDX-License-Identifier: Apache-2.0
#include "ir/builder.h"

#include <memory>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace loipe {

namespace {

std::string describe_call(const OpDef& op, std::span<const TensorType* const> operands) {
  std::vector<std::string> types;
  for (const TensorType* type : operands) types.push_back(to_string(*type));
  return std::string(op.name.value) + "(" + join(types, ", ") + ")";
}

void check_arity(const OpDef& op, std::span<const TensorType* const> operands) {
  const Arity arity = op.arity;
  const int count = static_cast<int>(operands.size());
  if (count >= arity.minimum && (arity.maximum == Arity::kVariadic || count <= arity.maximum)) return;
  std::string wanted = std::to_string(arity.minimum);
  if (arity.maximum == Arity::kVariadic) wanted += " or more";
  else if (arity.maximum != arity.minimum) wanted += " to " + std::to_string(arity.maximum);
  throw UserError(describe_call(op, operands) + ": expected " + wanted +
                  (wanted == "1" ? " operand, got " : " operands, got ") + std::to_string(count));
}

}  // namespace

TensorType infer_type(const OpDef& op, std::span<const TensorType* const> operands,
                      const Attributes& attributes) {
  check_arity(op, operands);
  try {
    TensorType type = op.infer.value({operands, attributes});
    element_count(type.shape);  // refuses what cannot be addressed
    return type;
  } catch (const ResourceError&) {
    throw;
  } catch (const UserError& error) {
    throw UserError(describe_call(op, operands) + ": " + error.what());
  }
}

Builder::Builder(Program program) : program_(std::move(program)) {
  program_.set_outputs({});
  for (std::uint32_t i = 0; i < program_.size(); ++i)
    if (&program_.op(Value{i}) == &constant_op())
      constants_.emplace(program_.attributes(Value{i}).print(), Value{i});
}

Value Builder::argument(std::string name, TensorType type) {
  element_count(type.shape);
  return program_.add_argument(std::move(name), std::move(type));
}

Value Builder::constant(Tensor tensor) {
  const TensorType type = tensor.type();
  const Attributes attributes{{"value", std::make_shared<const Tensor>(std::move(tensor))}};
  auto [place, is_new] = constants_.try_emplace(attributes.print(), Value{});
  if (is_new) place->second = program_.add_node(constant_op(), {}, attributes, type);
  return place->second;
}

Value Builder::scalar(double value, DType dtype) {
  Tensor tensor(TensorType{dtype, {}});
  tensor.set(0, value);
  return constant(std::move(tensor));
}

Value Builder::emit(const OpDef& op, std::span<const Value> operands, const Attributes& attributes) {
  std::vector<const TensorType*> types;
  types.reserve(operands.size());
  for (Value operand : operands) {
    require(operand.index < program_.size(), "an operand belongs to another program");
    types.push_back(&program_.type(operand));
  }
  const TensorType type = infer_type(op, types, attributes);
  return program_.add_node(op, operands, attributes, type);
}

Program Builder::finish(std::vector<Value> outputs) {
  for (Value output : outputs)
    require(output.index < program_.size(), "an output belongs to another program");
  program_.set_outputs(std::move(outputs));
  constants_.clear();
  return std::exchange(program_, Program());
}

}  // namespace loipe
