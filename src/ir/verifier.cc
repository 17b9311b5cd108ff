// SPDX-License-Identifier: Apache-2.0
#include "ir/verifier.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/text.h"
#include "ir/builder.h"
#include "ir/printer.h"

namespace loipe {

namespace {

/// The node with two lines on each side, itself marked.
std::string excerpt(const Program& program, std::uint32_t node) {
  constexpr std::uint32_t kAround = 2;
  constexpr std::size_t kLongestLine = 160;
  const ValueNames names(program);
  const auto first = node - std::min(node, kAround);
  const auto last = std::min(static_cast<std::uint32_t>(program.size()) - 1, node + kAround);
  std::string text;
  for (std::uint32_t i = first; i <= last; ++i)
    text +=
        (i == node ? "\n  > " : "\n    ") + shortened(node_to_text(program, names, Value{i}), kLongestLine);
  return text;
}

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  void run() {
    check_arguments();
    for (std::uint32_t i = 0; i < program_.size(); ++i) check_node(i);
    for (Value output : program_.outputs())
      if (output.index >= program_.size())
        fail("output " + std::to_string(output.index) + " is not one of its " +
             std::to_string(program_.size()) + " nodes");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InternalError("program '" + program_.name() + "' is invalid: " + what);
  }
  [[noreturn]] void fail(std::uint32_t node, const std::string& what) const {
    fail("node " + ValueNames(program_).of(Value{node}) + " " + what + excerpt(program_, node) + "\n");
  }

  void check_arguments() const {
    std::unordered_set<std::uint32_t> listed;
    std::unordered_set<std::string_view> names;
    for (std::size_t i = 0; i < program_.arguments().size(); ++i) {
      const std::uint32_t node = program_.arguments()[i].index;
      const std::string& name = program_.argument_name(i);
      if (node >= program_.size() || &program_.op(Value{node}) != &argument_op())
        fail("argument '" + name + "' is not an argument node");
      if (!listed.insert(node).second) fail(node, "is listed as an argument twice");
      if (!names.insert(name).second) fail(node, "has the name of another argument");
    }
    for (std::uint32_t i = 0; i < program_.size(); ++i)
      if (&program_.op(Value{i}) == &argument_op() && !listed.contains(i))
        fail(i, "is an argument that the program does not list");
  }

  void check_node(std::uint32_t node) const {
    const Value value{node};
    for (Value operand : program_.operands(value))
      if (operand >= value)
        fail(node, "uses operand " + std::to_string(operand.index) + ", not defined before it");
    if (&program_.op(value) == &argument_op()) {
      if (!program_.operands(value).empty() || !program_.attributes(value).empty())
        fail(node, "is an argument with operands or attributes");
      return;
    }
    const TensorType inferred = infer(node);
    if (inferred != program_.type(value))
      fail(node, "has type " + to_string(program_.type(value)) + ", but its op gives " + to_string(inferred));
    if (&program_.op(value) == &constant_op() &&
        program_.attributes(value).tensor("value").type() != inferred)
      fail(node, "has another type than its value");
  }

  TensorType infer(std::uint32_t node) const {
    std::vector<const TensorType*> types;
    for (Value operand : program_.operands(Value{node})) types.push_back(&program_.type(operand));
    try {
      return infer_type(program_.op(Value{node}), types, program_.attributes(Value{node}));
    } catch (const Error& error) {
      fail(node, std::string("has no type: ") + error.what());
    }
  }

  const Program& program_;
};

}  // namespace

void verify(const Program& program) { Verifier(program).run(); }

}  // namespace loipe
