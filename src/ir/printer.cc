// SPDX-License-Identifier: Apache-2.0
#include "ir/printer.h"

#include "base/text.h"
#include "ir/lexer.h"
#include "ir/op_def.h"

namespace loipe {

namespace {

constexpr std::uint32_t kUnlisted = UINT32_MAX;
constexpr std::size_t kLineWidth = 100;

std::string program_name(const std::string& name) { return is_word(name) ? name : quote(name); }

std::string argument_name(const std::string& name) {
  return "%" + (is_bare_argument_name(name) ? name : quote(name));
}

void append_node(std::string& text, const Program& program, const ValueNames& names, Value node) {
  names.append(text, node);
  text += " = ";
  text += program.op(node).name.value;
  const std::span<const Value> operands = program.operands(node);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    text += i == 0 ? "(" : ", ";
    names.append(text, operands[i]);
  }
  if (!operands.empty()) text += ')';
  const Attributes& attributes = program.attributes(node);
  if (!attributes.empty()) ((text += " {") += attributes.print()) += '}';
  (text += " : ") += to_string(program.type(node));
}

/// On one line when it fits, else one argument on each.
std::string print_arguments(const Program& program) {
  std::vector<std::string> parts;
  std::size_t width = 0;
  for (std::size_t i = 0; i < program.arguments().size(); ++i) {
    parts.push_back(argument_name(program.argument_name(i)) + ": " +
                    to_string(program.type(program.arguments()[i])));
    width += parts.back().size() + 2;
  }
  if (width <= kLineWidth) return "(" + join(parts, ", ") + ")";
  return "(\n    " + join(parts, ",\n    ") + ")";
}

}  // namespace

ValueNames::ValueNames(const Program& program) : program_(program), numbers_(program.size(), kUnlisted) {
  const std::span<const Value> arguments = program.arguments();
  for (std::uint32_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].index < program.size()) numbers_[arguments[i].index] = i;
  std::uint32_t constants = 0;
  const std::vector<int> vertices = program.vertex_numbers();
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    if (vertices[i] > 0) numbers_[i] = static_cast<std::uint32_t>(vertices[i]);
    else if (&program.op(Value{i}) == &constant_op()) numbers_[i] = ++constants;
  }
}

void ValueNames::append(std::string& text, Value value) const {
  if (value.index >= program_.size() || numbers_[value.index] == kUnlisted) {
    text += "%<invalid " + std::to_string(value.index) + ">";
  } else if (&program_.op(value) == &argument_op()) {
    text += argument_name(program_.argument_name(numbers_[value.index]));
  } else {
    text += &program_.op(value) == &constant_op() ? "%c" : "%";
    text += std::to_string(numbers_[value.index]);
  }
}

std::string ValueNames::of(Value value) const {
  std::string text;
  append(text, value);
  return text;
}

std::string node_to_text(const Program& program, const ValueNames& names, Value node) {
  std::string text;
  append_node(text, program, names, node);
  return text;
}

std::string program_to_text(const Program& program) {
  const ValueNames names(program);
  std::string text = "program " + program_name(program.name()) + print_arguments(program) + " {\n";
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    if (&program.op(Value{i}) == &argument_op()) continue;
    text += "  ";
    append_node(text, program, names, Value{i});
    text += '\n';
  }
  text += "  return";
  for (std::size_t i = 0; i < program.outputs().size(); ++i) {
    text += i == 0 ? " " : ", ";
    names.append(text, program.outputs()[i]);
  }
  return text += "\n}\n";
}

}  // namespace loipe
