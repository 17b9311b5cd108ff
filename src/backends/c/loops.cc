// SPDX-License-Identifier: Apache-2.0
#include "backends/c/loops.h"

#include <algorithm>

#include "backends/c/block.h"
#include "backends/c/elementwise.h"
#include "backends/c/emit_c.h"
#include "backends/c/expression.h"
#include "backends/c/movement.h"
#include "backends/c/nests.h"
#include "backends/cpu/arena.h"

namespace loipe::c {

namespace {

std::vector<TensorType> types_of(const Program& program, std::span<const Value> values) {
  std::vector<TensorType> types;
  for (Value v : values) types.push_back(program.type(v));
  return types;
}

class Printer {
 public:
  Printer(const Program& program, const SourceNames& names)
      : program_(program),
        signature_(names, types_of(program, program.arguments()), types_of(program, program.outputs())),
        unit_{program, signature_, plan_values(program), Helpers(names.function), {}} {}

  Source run(const std::vector<Pattern>& patterns) {
    for (std::uint32_t i = 0; i < program_.size(); ++i) print_node(Value{i});
    for (std::size_t k = 0; k < program_.outputs().size(); ++k) print_copy(k);
    const std::size_t work_bytes = place();
    std::vector<std::string> parts{""};
    std::size_t statements = 0;
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      const std::size_t more = blocks_[k].statements() + blocks_[k].uses().size();
      if (statements > 0 && statements + more > kStatementsPerFunction) {
        parts.emplace_back();
        statements = 0;
      }
      statements += more;
      parts.back() += text_of(k);
    }
    std::string text = signature_.preamble(patterns) + tables() + unit_.helpers.text();
    for (std::size_t k = 0; k < parts.size(); ++k) text += signature_.part(k, parts[k]);
    return {signature_.header(work_bytes, patterns, notes_), text + signature_.definition(parts.size())};
  }

 private:
  void print_node(Value v) {
    const Form form = unit_.plan[v.index].form;
    if ((form != Form::work && form != Form::output) || program_.type(v).element_count() == 0) return;
    Block& b = blocks_.emplace_back(unit_, v);
    const Nest* nest = find_nest(program_.op(v).name.value);
    if (is_elementwise(program_.op(v).name.value) || is_movement(program_, v)) {
      const Indices at = b.loops(b.shape());
      const std::string x = b.computed(v, at);
      b.line(b.element(v, position_of(b.shape(), at)) + " = " + x + ";");
      b.close_to(2);
    } else {
      nest->print(b);
      if (nest->note) note(v, *nest);
    }
  }

  void note(Value v, const Nest& nest) {
    std::vector<const TensorType*> operands;
    for (Value operand : program_.operands(v)) operands.push_back(&program_.type(operand));
    notes_.push_back(std::string(nest.op) + ": " +
                     nest.note({operands, program_.attributes(v), program_.type(v)}));
  }

  /// Outputs that are no memory of their own: arguments, constants, reshaped values, values that
  /// another output has.
  void print_copy(std::size_t output) {
    const Value v = program_.outputs()[output];
    const PlannedValue& planned = unit_.plan[v.index];
    const std::int64_t count = program_.type(v).element_count();
    if (count == 0 || (planned.form == Form::output && planned.number == output)) return;
    Block& b = blocks_.emplace_back(unit_, v);
    const Affine i = b.loop(count);
    const std::string x = planned.form == Form::literal
                              ? literal_at(program_.attributes(v).tensor("value"), 0)
                              : b.element(v, i);
    b.line(signature_.output(output) + "[" + i.text() + "] = " + x + ";");
    b.close_to(2);
  }

  /// Places all values and scratch of blocks in the scratch memory, and returns its size.
  std::size_t place() {
    std::map<std::uint32_t, std::size_t> buffer_of;
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      const auto step = static_cast<std::int32_t>(k);
      for (std::uint32_t v : blocks_[k].uses()) {
        const auto [known, is_new] = buffer_of.emplace(v, buffers_.size());
        if (is_new)
          buffers_.push_back({cpu::BufferKind::arena, program_.type(Value{v}).byte_size(), 0, step, step});
        buffers_[known->second].last_step = step;
      }
      for (const Scratch& scratch : blocks_[k].scratches()) {
        scratch_buffers_.emplace(std::pair(k, scratch.name), buffers_.size());
        buffers_.push_back({cpu::BufferKind::arena, scratch.bytes, 0, step, step});
      }
    }
    value_buffers_ = std::move(buffer_of);
    return cpu::plan_arena(buffers_);
  }

  std::string declared(const std::string& type, const std::string& name, std::size_t buffer) const {
    return "    " + type + "* restrict const " + name + " = (" + type + "*)((char*)work + " +
           std::to_string(buffers_[buffer].position) + ");\n";
  }

  std::string text_of(std::size_t k) const {
    const Block& b = blocks_[k];
    std::string text = "  { /* " + std::string(program_.op(b.node()).name.value) + " " +
                       to_string(program_.type(b.node())) + " */\n";
    for (std::uint32_t v : b.uses())
      text += declared(
          (v == b.node().index ? "" : "const ") + std::string(type_of(program_.type(Value{v}).dtype)),
          "v" + std::to_string(v), value_buffers_.at(v));
    for (const Scratch& scratch : b.scratches())
      text += declared(scratch.type, scratch.name, scratch_buffers_.at({k, scratch.name}));
    return text + b.text() + "  }\n";
  }

  std::string tables() const {
    std::string text;
    for (const auto& [node, tensor] : unit_.tables) {
      if (tensor.element_count() == 0) continue;
      text += "static const " + std::string(type_of(tensor.dtype())) + " " + signature_.function() +
              "_table" + std::to_string(node) + "[" + std::to_string(tensor.element_count()) + "] = {";
      for (std::int64_t i = 0; i < tensor.element_count(); ++i)
        text +=
            (i % 8 ? " " : "\n    ") + literal_at(tensor, i) + (i + 1 < tensor.element_count() ? "," : "");
      text += "};\n";
    }
    return text + "\n";
  }

  const Program& program_;
  Signature signature_;
  Unit unit_;
  std::vector<Block> blocks_;
  std::vector<std::string> notes_;
  std::vector<cpu::Buffer> buffers_;
  std::map<std::uint32_t, std::size_t> value_buffers_;
  std::map<std::pair<std::size_t, std::string>, std::size_t> scratch_buffers_;
};

}  // namespace

Source emit_loops(const Program& program, const SourceNames& names, const std::vector<Pattern>& patterns) {
  return Printer(program, names).run(patterns);
}

}  // namespace loipe::c
