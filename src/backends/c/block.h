// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "backends/c/affine.h"
#include "backends/c/helpers.h"
#include "backends/c/source.h"
#include "backends/c/values.h"

namespace loipe::c {

/// Scratch memory of one node's code.
struct Scratch {
  std::string name;
  std::string type;
  std::size_t bytes;
};

/// What the code of all nodes shares.
struct Unit {
  const Program& program;
  const Signature& signature;
  std::vector<PlannedValue> plan;
  Helpers helpers;
  std::map<std::uint32_t, Tensor> tables;  ///< those that are read, by node
};

/// The code of one node, in which inlined operands are computed where they are needed.
class Block {
 public:
  Block(Unit& unit, Value node) : unit_(unit), node_(node) {}

  const Program& program() const { return unit_.program; }
  Value node() const { return node_; }
  Value operand(std::size_t k) const { return program().operands(node_)[k]; }
  const Shape& shape() const { return program().shape(node_); }
  const Shape& shape_of(std::size_t k) const { return program().shape(operand(k)); }
  const Attributes& attributes() const { return program().attributes(node_); }
  DType dtype() const { return program().type(node_).dtype; }

  void line(const std::string& content);
  /// "head {"
  void open(const std::string& head);
  void close();
  std::size_t depth() const { return depth_; }
  void close_to(std::size_t depth);

  /// A loop over an extent; the index is 0 without one where there is nothing to repeat.
  Affine loop(std::int64_t extent);
  Indices loops(std::span<const std::int64_t> shape);

  /// A name that no other variable of the block has.
  std::string variable(std::string_view stem) { return std::string(stem) + std::to_string(next_++); }
  /// "const TYPE x = expression;", and the x.
  std::string define(DType dtype, const std::string& expression);

  /// The element as a variable, literal or element of memory; computes it first where it is inlined.
  std::string load(Value v, const Indices& at);
  /// The element of an operand that broadcasts to the index.
  std::string load_broadcast(Value v, const Indices& at);
  /// Where in memory the element is that load reads; 0 where it reads none.
  Affine position(Value v, const Indices& at) const;
  /// Of a value in memory.
  std::string element(Value v, const Affine& position);
  /// "base + position", null for no elements.
  std::string pointer(Value v, const Affine& position = 0);

  std::string scratch(DType dtype, std::int64_t count);
  std::string helper(std::string_view name, DType dtype) { return unit_.helpers.use(name, dtype); }

  // What has been written.
  const std::string& text() const { return text_; }
  std::size_t statements() const { return statements_; }
  /// Values in scratch memory that it reads or writes.
  const std::set<std::uint32_t>& uses() const { return uses_; }
  const std::vector<Scratch>& scratches() const { return scratches_; }

  /// The element at this index from the operands, for nodes that are elementwise or movement, or count.
  std::string computed(Value v, const Indices& at);

 private:
  std::string memory(Value v);

  Unit& unit_;
  Value node_;
  std::string text_;
  std::size_t depth_ = 2, statements_ = 0;
  int next_ = 0;
  std::set<std::uint32_t> uses_;
  std::vector<Scratch> scratches_;
  /// Elements that are computed, by node and index; those of loops that are closed are forgotten.
  struct Known {
    std::size_t depth;
    std::string name;
  };
  std::map<std::string, Known> known_;
};

}  // namespace loipe::c
