// SPDX-License-Identifier: Apache-2.0
#include "backends/c/block.h"

#include <memory>

#include "backends/c/elementwise.h"
#include "backends/c/expression.h"
#include "backends/c/movement.h"
#include "base/check.h"

namespace loipe::c {

void Block::line(const std::string& content) {
  text_ += std::string(2 * depth_, ' ') + content + "\n";
  ++statements_;
}

void Block::open(const std::string& head) {
  line(head + " {");
  ++depth_;
}

void Block::close() {
  --depth_;
  text_ += std::string(2 * depth_, ' ') + "}\n";
  std::erase_if(known_, [&](const auto& entry) { return entry.second.depth > depth_; });
}

void Block::close_to(std::size_t depth) {
  while (depth_ > depth) close();
}

Affine Block::loop(std::int64_t extent) {
  if (extent == 1) return 0;
  const std::string i = variable("i");
  open("for (int64_t " + i + " = 0; " + i + " < " + std::to_string(extent) + "; ++" + i + ")");
  return Affine::of(i);
}

Indices Block::loops(std::span<const std::int64_t> shape) {
  Indices at;
  for (std::int64_t extent : shape) at.push_back(loop(extent));
  return at;
}

std::string Block::define(DType dtype, const std::string& expression) {
  const std::string name = variable("x");
  line(std::string("const ") + type_of(dtype) + " " + name + " = " + expression + ";");
  return name;
}

std::string Block::memory(Value v) {
  while (unit_.plan[v.index].form == Form::alias) v = program().operands(v)[0];
  const PlannedValue& planned = unit_.plan[v.index];
  switch (planned.form) {
    case Form::argument: return unit_.signature.argument(planned.number);
    case Form::output: return unit_.signature.output(planned.number);
    case Form::work: uses_.insert(v.index); return "v" + std::to_string(v.index);
    case Form::table:
      if (!unit_.tables.contains(v.index)) unit_.tables.emplace(v.index, table_of(program(), v));
      return unit_.signature.function() + "_table" + std::to_string(v.index);
    default: throw InternalError("a value without memory is read there in C");
  }
}

std::string Block::element(Value v, const Affine& position) {
  return memory(v) + "[" + position.text() + "]";
}

std::string Block::pointer(Value v, const Affine& position) {
  if (program().type(v).element_count() == 0) return "0";
  const std::string offset = position.text();
  return offset == "0" ? memory(v) : memory(v) + " + " + offset;
}

Affine Block::position(Value v, const Indices& at) const {
  const Form form = unit_.plan[v.index].form;
  if (form == Form::literal) return 0;
  if (form != Form::inlined) return position_of(program().shape(v), at);
  return is_movement(program(), v) ? position(program().operands(v)[0], moved(program(), v, at)) : 0;
}

std::string Block::load(Value v, const Indices& at) {
  const Form form = unit_.plan[v.index].form;
  if (form == Form::literal) return literal_at(program().attributes(v).tensor("value"), 0);
  if (form == Form::inlined) return computed(v, at);
  return element(v, position_of(program().shape(v), at));
}

std::string Block::load_broadcast(Value v, const Indices& at) {
  const Shape& shape = program().shape(v);
  Indices own;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    own.push_back(shape[axis] == 1 ? Affine(0) : at[axis]);
  return load(v, own);
}

std::string Block::computed(Value v, const Indices& at) {
  if (is_movement(program(), v)) return load(program().operands(v)[0], moved(program(), v, at));
  std::string key = std::to_string(v.index);
  for (const Affine& index : at) key += "," + index.text();
  if (const auto known = known_.find(key); known != known_.end()) return known->second.name;
  std::vector<std::string> operands;
  for (Value operand : program().operands(v)) operands.push_back(load_broadcast(operand, at));
  const std::string name = define(program().type(v).dtype, elementwise(*this, v, operands, at));
  known_.insert_or_assign(key, Known{depth_, name});
  return name;
}

std::string Block::scratch(DType dtype, std::int64_t count) {
  scratches_.push_back({variable("scratch"), type_of(dtype),
                        static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * size_of(dtype)});
  return scratches_.back().name;
}

}  // namespace loipe::c
