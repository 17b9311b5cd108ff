// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <compare>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/attributes.h"

namespace loipe {

struct OpDef;

/// The result of a node; its index is the node's. Only meaningful within one program.
struct Value {
  std::uint32_t index = 0;
  auto operator<=>(const Value&) const = default;
};

/// One use of an op. Types and attributes are interned in the program, operands
/// lie in one array, so a node takes 24 bytes and a million of them are cheap.
struct Node {
  const OpDef* op;
  std::uint32_t first_operand;
  std::uint32_t operand_count;
  std::uint32_t type;
  std::uint32_t attributes;
};

/// A tensor program: straight-line code in static single assignment form with
/// static shapes. Arguments and constants are nodes too (ops "argument" and
/// "constant"); every node has one result. A node's operands come before it.
class Program {
 public:
  explicit Program(std::string name = "main");

  const std::string& name() const { return name_; }

  std::size_t size() const { return nodes_.size(); }
  const Node& node(Value v) const { return nodes_[v.index]; }
  const OpDef& op(Value v) const { return *nodes_[v.index].op; }
  const TensorType& type(Value v) const { return types_[nodes_[v.index].type]; }
  const Shape& shape(Value v) const { return type(v).shape; }
  const Attributes& attributes(Value v) const { return attributes_[nodes_[v.index].attributes]; }
  std::span<const Value> operands(Value v) const {
    const Node& n = nodes_[v.index];
    return {operands_.data() + n.first_operand, n.operand_count};
  }

  std::span<const Value> arguments() const { return arguments_; }
  const std::string& argument_name(std::size_t position) const { return argument_names_[position]; }
  /// The argument's position, or UserError that suggests the nearest name.
  std::size_t argument_position(std::string_view name) const;
  std::span<const Value> outputs() const { return outputs_; }

  // Building. `Builder` infers types and checks; this only stores.
  Value add_argument(std::string name, TensorType type);
  Value add_node(const OpDef& op, std::span<const Value> operands, const Attributes& attributes,
                 const TensorType& type);
  void set_outputs(std::vector<Value> outputs) { outputs_ = std::move(outputs); }

  /// The number of a node in the published numbering: 1..V over all nodes that
  /// are neither arguments nor constants, in program order; 0 for those.
  std::vector<int> vertex_numbers() const;

 private:
  std::uint32_t intern(const TensorType& type);
  std::uint32_t intern(const Attributes& attributes);

  std::string name_;
  std::vector<Node> nodes_;
  std::vector<Value> operands_;
  // Deques: references to types and attributes stay valid while nodes are added.
  std::deque<TensorType> types_;
  std::unordered_multimap<std::size_t, std::uint32_t> type_index_;  ///< by hash
  std::deque<Attributes> attributes_;
  std::unordered_multimap<std::size_t, std::uint32_t> attribute_index_;
  std::vector<Value> arguments_;
  std::vector<std::string> argument_names_;
  std::unordered_map<std::string, std::size_t> argument_index_;
  std::vector<Value> outputs_;
};

}  // namespace loipe
