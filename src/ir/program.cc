// SPDX-License-Identifier: Apache-2.0
#include "ir/program.h"

#include "base/text.h"
#include "ir/op_def.h"

namespace loipe {

Program::Program(std::string name) : name_(std::move(name)) { intern(Attributes{}); }

namespace {

std::size_t hash_of(const TensorType& type) {
  auto hash = static_cast<std::uint64_t>(type.dtype) + 1;
  for (std::int64_t extent : type.shape)
    hash = (hash ^ (hash >> 29) ^ static_cast<std::uint64_t>(extent)) * 0x9e3779b97f4a7c15u;
  return static_cast<std::size_t>(hash ^ (hash >> 32));
}

/// The number of the entry that equals `value`, which becomes the last where there is none.
template <class T>
std::uint32_t find_or_add(std::deque<T>& entries, std::unordered_multimap<std::size_t, std::uint32_t>& index,
                          std::size_t hash, const T& value) {
  for (auto [place, end] = index.equal_range(hash); place != end; ++place)
    if (entries[place->second] == value) return place->second;
  const auto number = static_cast<std::uint32_t>(entries.size());
  entries.push_back(value);
  index.emplace(hash, number);
  return number;
}

}  // namespace

std::uint32_t Program::intern(const TensorType& type) {
  return find_or_add(types_, type_index_, hash_of(type), type);
}

std::uint32_t Program::intern(const Attributes& attributes) {
  if (attributes.empty() && !attributes_.empty()) return 0;
  return find_or_add(attributes_, attribute_index_, attributes.hash(), attributes);
}

Value Program::add_node(const OpDef& op, std::span<const Value> operands, const Attributes& attributes,
                        const TensorType& type) {
  const Value result{static_cast<std::uint32_t>(nodes_.size())};
  for (Value operand : operands)
    if (operand >= result)
      throw InternalError("an operand of '" + std::string(op.name) + "' is not yet defined");
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
