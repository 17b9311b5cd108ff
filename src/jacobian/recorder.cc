// SPDX-License-Identifier: Apache-2.0
#include "jacobian/recorder.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace loipe {

// Ops are looked up by name: this layer lies below the op records.
#define LOIPE_OP(op_name)                              \
  [&]() -> const OpDef& {                              \
    static const OpDef& definition = find_op(op_name); \
    return definition;                                 \
  }()

Value Recorder::multiply(Value a, Value b) { return builder_.emit(LOIPE_OP("mul"), {a, b}); }
Value Recorder::add(Value a, Value b) { return builder_.emit(LOIPE_OP("add"), {a, b}); }
Value Recorder::subtract(Value a, Value b) { return builder_.emit(LOIPE_OP("sub"), {a, b}); }
Value Recorder::negate(Value a) { return builder_.emit(LOIPE_OP("neg"), {a}); }
Value Recorder::logical_and(Value a, Value b) { return builder_.emit(LOIPE_OP("and"), {a, b}); }
Value Recorder::equal(Value a, Value b) { return builder_.emit(LOIPE_OP("eq"), {a, b}); }

Value Recorder::select(Value condition, Value a, Value b) {
  return builder_.emit(LOIPE_OP("select"), {condition, a, b});
}

Value Recorder::convert(Value a, DType dtype) {
  if (type(a).dtype == dtype) return a;
  return builder_.emit(LOIPE_OP("convert_element_type"), {a}, {{"dtype", dtype}});
}

Value Recorder::reshape(Value a, const Shape& shape) {
  if (type(a).shape == shape) return a;
  return builder_.emit(LOIPE_OP("reshape"), {a}, {{"shape", shape}});
}

Value Recorder::broadcast(Value a, const Shape& shape, const Integers& dimensions) {
  return builder_.emit(LOIPE_OP("broadcast_in_dim"), {a}, {{"shape", shape}, {"dimensions", dimensions}});
}

Value Recorder::reduce_sum(Value a, const Integers& axes) {
  return axes.empty() ? a : builder_.emit(LOIPE_OP("reduce_sum"), {a}, {{"axes", axes}});
}

Value Recorder::full(double value, const Shape& shape, DType dtype) {
  return broadcast(scalar(value, dtype), shape, {});
}

namespace {

/// Names labels a, b, c, ... in the order in which they are asked for.
class LocalNames {
 public:
  std::string of(const std::vector<Label>& labels) {
    std::string text;
    for (Label label : labels)
      text += label_name(names_.try_emplace(label, static_cast<Label>(names_.size())).first->second);
    return text;
  }
  std::size_t size() const { return names_.size(); }

 private:
  std::map<Label, Label> names_;
};

}  // namespace

LabelledValue Recorder::einsum(std::span<const LabelledValue> values, std::span<const LabelledValue> masks,
                               const std::vector<Label>& result) {
  LocalNames names;
  const std::string target = names.of(result);
  std::string spec;
  std::vector<Value> operands;
  for (auto group : {values, masks})
    for (const LabelledValue& operand : group) {
      if (!operands.empty()) spec += ",";
      spec += names.of(operand.axes);
      operands.push_back(operand.value);
    }
  require(names.size() <= 52, "a product of local Jacobians has more than 52 labels");
  return {builder_.emit(LOIPE_OP("einsum"), operands, {{"spec", spec + "->" + target}}), result};
}

namespace {

/// Coordinates over the given labels as text, with static tables as constant
/// operands; appends the index operands.
std::string coordinates_for_op(Builder& builder, std::span<const Coordinate> at,
                               const std::vector<Label>& labels, Extents extents,
                               std::vector<Value>& operands) {
  auto local = [&](Label label) {
    auto place = std::find(labels.begin(), labels.end(), label);
    require(place != labels.end(), "a coordinate uses a label that is not iterated over");
    return static_cast<Label>(place - labels.begin());
  };
  std::vector<Coordinate> renamed(at.begin(), at.end());
  for (Coordinate& coordinate : renamed) {
    for (Stride& s : coordinate.strides) s.label = local(s.label);
    if (!coordinate.index) continue;
    IndexArray& index = *coordinate.index;
    Value operand = index.value;
    if (!index.is_dynamic()) {
      Shape shape;
      for (Label label : index.labels) shape.push_back(extents[label]);
      operand = builder.constant(Tensor::of<std::int64_t>(shape, std::span(*index.numbers)));
      index.numbers = nullptr;
    }
    index.value = Value{static_cast<std::uint32_t>(operands.size())};
    operands.push_back(operand);
    for (Label& label : index.labels) label = local(label);
  }
  return print_coordinates(renamed);
}

Integers extents_of(const std::vector<Label>& labels, Extents extents) {
  Integers result;
  for (Label label : labels) result.push_back(extents[label]);
  return result;
}

}  // namespace

Value Recorder::gather(Value source, std::span<const Coordinate> at, const std::vector<Label>& labels,
                       Extents extents) {
  std::vector<Value> operands{source};
  const std::string from = coordinates_for_op(builder_, at, labels, extents, operands);
  return builder_.emit(LOIPE_OP("gather"), operands,
                       {{"extents", extents_of(labels, extents)}, {"from", from}});
}

Value Recorder::scatter(const LabelledValue& value, std::span<const Coordinate> at,
                        const std::vector<Label>& labels, Extents extents, const Shape& shape,
                        std::optional<Value> base) {
  std::vector<Value> operands{value.value};
  Attributes attributes{{"extents", extents_of(labels, extents)}, {"shape", shape}};
  if (base) {
    attributes.set("base", std::int64_t{1});
    operands.push_back(*base);
  }
  Integers axes;
  for (Label axis : value.axes) {
    auto place = std::find(labels.begin(), labels.end(), axis);
    require(place != labels.end(), "a scattered value has an axis that is not iterated over");
    axes.push_back(place - labels.begin());
  }
  attributes.set("axes", axes);
  attributes.set("to", coordinates_for_op(builder_, at, labels, extents, operands));
  return builder_.emit(LOIPE_OP("scatter"), operands, attributes);
}

LabelledValue Recorder::any(const LabelledValue& mask, const std::vector<Label>& kept) {
  Integers summed;
  LabelledValue result{mask.value, {}, mask.kind};
  for (std::size_t axis = 0; axis < mask.axes.size(); ++axis) {
    if (std::find(kept.begin(), kept.end(), mask.axes[axis]) != kept.end())
      result.axes.push_back(mask.axes[axis]);
    else summed.push_back(static_cast<std::int64_t>(axis));
  }
  if (summed.empty()) return mask;
  const Value most =
      builder_.emit(LOIPE_OP("reduce_max"), {convert(mask.value, DType::f32)}, {{"axes", summed}});
  result.value = builder_.emit(LOIPE_OP("gt"), {most, scalar(0, DType::f32)});
  return result;
}

Value Recorder::aligned(const LabelledValue& value, const std::vector<Label>& labels) {
  Integers permutation;
  Shape shape;
  for (Label label : labels) {
    auto place = std::find(value.axes.begin(), value.axes.end(), label);
    if (place == value.axes.end()) {
      shape.push_back(1);
      continue;
    }
    permutation.push_back(place - value.axes.begin());
    shape.push_back(type(value.value).shape[static_cast<std::size_t>(permutation.back())]);
  }
  require(permutation.size() == value.axes.size(), "a value has a label that its alignment lacks");
  Value result = value.value;
  if (!std::is_sorted(permutation.begin(), permutation.end()))
    result = builder_.emit(LOIPE_OP("transpose"), {result}, {{"permutation", permutation}});
  return reshape(result, shape);
}

}  // namespace loipe
