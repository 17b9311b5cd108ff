// SPDX-License-Identifier: Apache-2.0
#include "ir/program.h"

#include "base/check.h"
#include "base/text.h"
#include "ir/op_def.h"

namespace loipe {

Program::Program(std::string name) : name_(std::move(name)) { intern(Attributes{}); }

std::uint32_t Program::intern(const TensorType& type) {
  auto [place, is_new] = type_index_.try_emplace(to_string(type), static_cast<std::uint32_t>(types_.size()));
  if (is_new) types_.push_back(type);
  return place->second;
}

std::uint32_t Program::intern(const Attributes& attributes) {
  if (attributes.empty() && !attributes_.empty()) return 0;
  auto [place, is_new] =
      attribute_index_.try_emplace(attributes.print(), static_cast<std::uint32_t>(attributes_.size()));
  if (is_new) attributes_.push_back(attributes);
  return place->second;
}

Value Program::add_node(const OpDef& op, std::span<const Value> operands, const Attributes& attributes,
                        const TensorType& type) {
  const Value result{static_cast<std::uint32_t>(nodes_.size())};
  for (Value operand : operands)
    require(operand < result, "an operand of '" + std::string(op.name) + "' is not yet defined");
  nodes_.push_back({&op, static_cast<std::uint32_t>(operands_.size()),
                    static_cast<std::uint32_t>(operands.size()), intern(type), intern(attributes)});
  operands_.insert(operands_.end(), operands.begin(), operands.end());
  return result;
}

Value Program::add_argument(std::string name, TensorType type) {
  if (!argument_index_.emplace(name, arguments_.size()).second)
    throw UserError("two arguments are named '" + name + "'");
  const Value result = add_node(argument_op(), {}, {}, type);
  arguments_.push_back(result);
  argument_names_.push_back(std::move(name));
  return result;
}

std::size_t Program::argument_position(std::string_view name) const {
  if (auto place = argument_index_.find(std::string(name)); place != argument_index_.end())
    return place->second;
  throw UserError("program '" + name_ + "' has no argument '" + std::string(name) + "'" +
                  did_you_mean(name, argument_names_) + "; its arguments are " + join(argument_names_, ", "));
}

std::vector<int> Program::vertex_numbers() const {
  std::vector<int> numbers(nodes_.size(), 0);
  int next = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].op != &argument_op() && nodes_[i].op != &constant_op()) numbers[i] = ++next;
  return numbers;
}

}  // namespace loipe
