// SPDX-License-Identifier: Apache-2.0
#include "passes/rebuild.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "base/check.h"
#include "ir/builder.h"

namespace loipe {

namespace {

constexpr Value kUnmapped{std::numeric_limits<std::uint32_t>::max()};

}  // namespace

Rebuild::Rebuild(const Program& source)
    : source_(source), target_(source.name()), replacement_(source.size(), kUnmapped) {}

Value Rebuild::of(Value old) const {
  const Value now = replacement_[old.index];
  require(now != kUnmapped, "a pass uses a node that it has left out");
  return now;
}

std::span<const Value> Rebuild::operands_of(Value old) {
  operands_.clear();
  for (Value operand : source_.operands(old)) operands_.push_back(of(operand));
  return operands_;
}

Value Rebuild::copy(Value old) {
  if (is_argument(source_, old)) {
    // Arguments are listed in the order of their nodes, so the next one is this one.
    const std::string& name = source_.argument_name(target_.arguments().size());
    return replace(old, target_.add_argument(name, source_.type(old)));
  }
  if (is_constant(source_, old))
    return replace(old, add_constant(source_.attributes(old), source_.type(old)));
  return replace(
      old, target_.add_node(source_.op(old), operands_of(old), source_.attributes(old), source_.type(old)));
}

Value Rebuild::replace(Value old, Value now) {
  require(now.index < target_.size(), "a pass replaces a node by a value that does not exist");
  return replacement_[old.index] = now;
}

Value Rebuild::emit(const OpDef& op, std::span<const Value> operands, const Attributes& attributes) {
  std::vector<const TensorType*> types;
  types.reserve(operands.size());
  for (Value operand : operands) types.push_back(&target_.type(operand));
  return target_.add_node(op, operands, attributes, infer_type(op, types, attributes));
}

Value Rebuild::constant(Tensor tensor) {
  const TensorType type = tensor.type();
  return add_constant({{"value", std::make_shared<const Tensor>(std::move(tensor))}}, type);
}

Value Rebuild::scalar(double value, DType dtype) {
  Tensor tensor(TensorType{dtype, {}});
  tensor.set(0, value);
  return constant(std::move(tensor));
}

Value Rebuild::add_constant(const Attributes& attributes, const TensorType& type) {
  const auto add = [&] { return target_.add_node(constant_op(), {}, attributes, type); };
  if (!type.shape.empty()) return add();
  const auto [place, is_new] = scalars_.try_emplace(scalar_key(attributes.tensor("value")), Value{});
  if (is_new) place->second = add();
  return place->second;
}

Program Rebuild::finish() {
  std::vector<Value> outputs;
  for (Value output : source_.outputs()) outputs.push_back(of(output));
  target_.set_outputs(std::move(outputs));
  return std::move(target_);
}

Rebuild::ScalarKey Rebuild::scalar_key(const Tensor& tensor) {
  // Programs do not tell one NaN from another: all have one text.
  if (std::isnan(tensor.at(0))) return {tensor.dtype(), ~std::uint64_t{0}};
  std::uint64_t bits = 0;
  std::memcpy(&bits, tensor.bytes().data(), tensor.bytes().size());
  return {tensor.dtype(), bits};
}

std::vector<bool> live_nodes(const Program& program) {
  std::vector<bool> is_live(program.size(), false);
  for (Value output : program.outputs()) is_live[output.index] = true;
  for (auto i = static_cast<std::uint32_t>(program.size()); i-- > 0;)
    if (is_live[i])
      for (Value operand : program.operands(Value{i})) is_live[operand.index] = true;
  return is_live;
}

}  // namespace loipe
