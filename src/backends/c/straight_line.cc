// SPDX-License-Identifier: Apache-2.0
#include "backends/c/straight_line.h"

#include <algorithm>
#include <unordered_map>

#include "backends/c/emit_c.h"
#include "backends/c/expression.h"

namespace loipe::c {

namespace {

using scalar::Id;
using scalar::Node;
using scalar::Op;

/// Of one function. A value that later functions need takes two lines.
constexpr std::size_t kStatementsPerPart = 3 * kStatementsPerFunction / 5;

/// One line: a node that is computed, or elements first..last-1 of an output that get one value.
struct Statement {
  Id node;
  bool is_store;
  std::uint32_t output = 0, first = 0, last = 0;
};

/// Values that are used behind the function that computes them go through the scratch memory.
class Printer {
 public:
  Printer(const scalar::Program& program, const SourceNames& names)
      : program_(program),
        signature_(names, program.arguments, program.outputs),
        type_(type_of(program.dtype)),
        part_(program.nodes.size()) {
    list_statements();
    std::vector<std::size_t> last_use(program.nodes.size());
    for (std::size_t i = 0; i < statements_.size(); ++i) {
      const Statement& statement = statements_[i];
      if (statement.is_store) {
        last_use[statement.node] = part_of(i);
        continue;
      }
      part_[statement.node] = part_of(i);
      const Node& node = program.nodes[statement.node];
      for (int k = 0; k < scalar::arity(node.op); ++k) last_use[node.operands[k]] = part_of(i);
    }
    for (Id id = 0; id < program.nodes.size(); ++id)
      if (!is_leaf(id) && last_use[id] > part_[id]) slot_.emplace(id, slot_.size());
  }

  Source run(const std::vector<Pattern>& patterns) const {
    std::string text = signature_.preamble(patterns);
    const std::size_t parts = statements_.empty() ? 0 : part_of(statements_.size() - 1) + 1;
    for (std::size_t part = 0; part < parts; ++part) text += signature_.part(part, body(part));
    return {signature_.header(slot_.size() * size_of(program_.dtype), patterns, {}),
            text + signature_.definition(parts)};
  }

 private:
  static std::size_t part_of(std::size_t statement) { return statement / kStatementsPerPart; }
  bool is_leaf(Id id) const {
    return program_.nodes[id].op == Op::constant || program_.nodes[id].op == Op::argument;
  }

  /// A value is stored as soon as it is known; constants are stored in runs at the end.
  void list_statements() {
    std::vector<std::vector<std::size_t>> stores(program_.nodes.size());
    for (std::size_t s = 0; s < program_.stores.size(); ++s) stores[program_.stores[s].value].push_back(s);
    for (Id id = 0; id < program_.nodes.size(); ++id) {
      if (!is_leaf(id)) statements_.push_back({id, false});
      for (std::size_t s : stores[id]) {
        const auto& [output, element, value] = program_.stores[s];
        if (program_.nodes[id].op != Op::constant)
          statements_.push_back({id, true, output, element, element + 1});
      }
    }
    const std::size_t first_constant = statements_.size();
    for (const auto& [output, element, value] : program_.stores) {
      if (program_.nodes[value].op != Op::constant) continue;
      Statement* before = statements_.size() > first_constant ? &statements_.back() : nullptr;
      if (before && before->node == value && before->output == output && before->last == element)
        ++before->last;
      else statements_.push_back({value, true, output, element, element + 1});
    }
  }

  std::string body(std::size_t part) const {
    std::string text;
    if (!slot_.empty()) text += "  " + type_ + "* const values = (" + type_ + "*)work;\n  (void)values;\n";
    const std::size_t first = part * kStatementsPerPart;
    for (std::size_t i = first; i < std::min(first + kStatementsPerPart, statements_.size()); ++i)
      text += "  " + (statements_[i].is_store ? store(statements_[i], part) : computed(statements_[i], part));
    return text;
  }

  std::string computed(const Statement& statement, std::size_t part) const {
    const Id id = statement.node;
    const Node& node = program_.nodes[id];
    const std::string variable = "loipe_" + std::to_string(id);
    std::string text =
        "const " + type_ + " " + variable + " = " +
        expression(node.op, program_.dtype, [&](int k) { return name(node.operands[k], part); }) + ";\n";
    if (const auto slot = slot_.find(id); slot != slot_.end())
      text += "  values[" + std::to_string(slot->second) + "] = " + variable + ";\n";
    return text;
  }

  std::string store(const Statement& s, std::size_t part) const {
    const std::string output = signature_.output(s.output), value = name(s.node, part) + ";\n";
    if (s.last - s.first < 4) {
      std::string text;
      for (std::uint32_t e = s.first; e < s.last; ++e)
        text += (e > s.first ? "  " : "") + output + "[" + std::to_string(e) + "] = " + value;
      return text;
    }
    return "for (int64_t i = " + std::to_string(s.first) + "; i < " + std::to_string(s.last) + "; ++i) " +
           output + "[i] = " + value;
  }

  std::string name(Id id, std::size_t part) const {
    const Node& node = program_.nodes[id];
    if (node.op == Op::constant) return literal(program_.constants[node.operands[0]], program_.dtype);
    if (node.op == Op::argument)
      return signature_.argument(node.operands[0]) + "[" + std::to_string(node.operands[1]) + "]";
    return part_[id] == part ? "loipe_" + std::to_string(id) : "values[" + std::to_string(slot_.at(id)) + "]";
  }

  const scalar::Program& program_;
  Signature signature_;
  std::string type_;
  std::vector<Statement> statements_;
  std::vector<std::size_t> part_;  ///< of nodes that are computed: the function that does it
  std::unordered_map<Id, std::size_t> slot_;
};

}  // namespace

Source emit_straight_line(const scalar::Program& program, const SourceNames& names,
                          const std::vector<Pattern>& patterns) {
  return Printer(program, names).run(patterns);
}

}  // namespace loipe::c
