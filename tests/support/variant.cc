// SPDX-License-Identifier: Apache-2.0
#include "support/variant.h"

#include <algorithm>
#include <memory>

#include "ir/builder.h"
#include "ir/interpreter.h"

namespace loipe::testing {

namespace {

/// The leading corner of the tensor.
Tensor corner(const Tensor& tensor, const Shape& shape) {
  Tensor result(TensorType{tensor.dtype(), shape});
  for (std::int64_t i = 0; i < result.element_count(); ++i) {
    std::int64_t rest = i, position = 0, stride = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      position += rest % shape[axis] * stride;
      rest /= shape[axis];
      stride *= tensor.shape()[axis];
    }
    result.set(i, tensor.at(position));
  }
  return result;
}

class Editor {
 public:
  Editor(const Case& c, const Edit& edit, const std::vector<Tensor>& values)
      : old_(c.program), edit_(edit), values_(values), builder_(c.program.name()), now_(c.program.size()) {
    for (std::size_t i = 0; i < c.arguments.size(); ++i) position_[old_.arguments()[i]] = i;
  }

  Case run() && {
    const std::vector<bool> is_needed = needed();
    for (std::uint32_t i = 0; i < old_.size(); ++i)
      if (is_needed[i]) now_[i] = add(Value{i});
    std::vector<Value> results;
    for (Value output : outputs()) results.push_back(now_[represented(output).index]);
    return {builder_.finish(results), std::move(arguments_)};
  }

 private:
  std::span<const Value> outputs() const { return edit_.outputs ? *edit_.outputs : old_.outputs(); }

  Value represented(Value v) const {
    for (auto place = edit_.replaced.find(v); place != edit_.replaced.end(); place = edit_.replaced.find(v))
      v = place->second;
    return v;
  }

  std::vector<bool> needed() const {
    std::vector<bool> result(old_.size(), false);
    for (Value output : outputs()) result[represented(output).index] = true;
    for (auto i = static_cast<std::uint32_t>(old_.size()); i-- > 0;)
      if (result[i] && !edit_.cut.contains(Value{i}))
        for (Value operand : old_.operands(Value{i})) result[represented(operand).index] = true;
    return result;
  }

  Value add(Value v) {
    if (edit_.cut.contains(v)) return add_argument("cut", values_[v.index]);
    if (&old_.op(v) == &argument_op())
      return add_argument(old_.argument_name(position_.at(v)), contents(v, position_.at(v)));
    Attributes attributes = with_extents(old_.attributes(v));
    if (&old_.op(v) == &constant_op())
      attributes = {{"value", std::make_shared<const Tensor>(contents(v, std::nullopt))}};
    std::vector<Value> operands;
    for (Value operand : old_.operands(v)) operands.push_back(now_[represented(operand).index]);
    return builder_.emit(old_.op(v), operands, attributes);
  }

  Value add_argument(const std::string& name, Tensor tensor) {
    std::string free_name = name;
    const auto is_taken = [&](const std::string& wanted) {
      for (std::size_t i = 0; i < old_.arguments().size(); ++i)
        if (name == "cut" && old_.argument_name(i) == wanted) return true;
      for (std::size_t i = 0; i < arguments_.size(); ++i)
        if (builder_.program().argument_name(i) == wanted) return true;
      return false;
    };
    for (int number = 1; is_taken(free_name); ++number) free_name = name + std::to_string(number);
    arguments_.push_back(std::move(tensor));
    return builder_.argument(free_name, arguments_.back().type());
  }

  /// Of an argument or constant.
  Tensor contents(Value v, std::optional<std::size_t> argument) const {
    const auto place = edit_.tensors.find(v);
    const Tensor& tensor = place == edit_.tensors.end() ? values_[v.index] : place->second;
    if (!edit_.extents || (edit_.extents->argument && edit_.extents->argument != argument)) return tensor;
    return corner(tensor, with_extents(tensor.shape()));
  }

  Shape with_extents(Shape shape) const {
    std::ranges::replace(shape, edit_.extents->from, edit_.extents->to);
    return shape;
  }
  Attributes with_extents(Attributes attributes) const {
    if (!edit_.extents || edit_.extents->argument) return attributes;
    const Attributes before = attributes;
    for (const auto& [name, value] : before.entries()) {
      if (const auto* list = std::get_if<Integers>(&value)) attributes.set(name, with_extents(*list));
      if (const auto* number = std::get_if<std::int64_t>(&value); number && *number == edit_.extents->from)
        attributes.set(name, edit_.extents->to);
    }
    return attributes;
  }

  const Program& old_;
  const Edit& edit_;
  const std::vector<Tensor>& values_;
  Builder builder_;
  std::vector<Value> now_;
  std::map<Value, std::size_t> position_;  ///< of arguments
  std::vector<Tensor> arguments_;
};

}  // namespace

NodeValues node_values(const Case& c) {
  Program all = c.program;
  std::vector<Value> every;
  for (std::uint32_t i = 0; i < all.size(); ++i) every.push_back(Value{i});
  all.set_outputs(every);
  try {
    return {evaluate(all, c.arguments)};
  } catch (const Error&) {
    NodeValues values{std::vector<Tensor>(all.size()), false};
    for (std::size_t i = 0; i < c.arguments.size(); ++i) values.of[all.arguments()[i].index] = c.arguments[i];
    for (Value v : every)
      if (&all.op(v) == &constant_op()) values.of[v.index] = all.attributes(v).tensor("value");
    return values;
  }
}

std::optional<Case> edited(const Case& c, const Edit& edit, const NodeValues& values) {
  try {
    return Editor(c, edit, values.of).run();
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace loipe::testing
