// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/check.h"
#include "jacobian/raw_term.h"

namespace loipe {

namespace {

std::vector<Label> merged(std::vector<Label> a, const std::vector<Label>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  a.erase(std::unique(a.begin(), a.end()), a.end());
  return a;
}

std::vector<Label> without(std::vector<Label> labels, Label label) {
  std::erase(labels, label);
  return labels;
}

/// All values of a composed static coordinate as a table over `labels`.
Coordinate tabulated(const Coordinate& coordinate, Label label, const Coordinate& replacement,
                     const std::vector<Label>& labels, Extents extents) {
  std::vector<std::int64_t> numbers;
  std::vector<std::int64_t> inner(extents.size());
  for_each_assignment(labels, extents, [&](std::span<const std::int64_t> assignment) {
    inner.assign(assignment.begin(), assignment.end());
    inner[label] = position(replacement, assignment, extents);
    numbers.push_back(position(coordinate, inner, extents));
  });
  return simplified(Coordinate::table(labels, std::move(numbers)), extents);
}

Coordinate dynamic_table(std::vector<Label> labels, Value value) {
  Coordinate result;
  result.index = IndexArray{std::move(labels), nullptr, value};
  return result;
}

/// A dynamic table read at other coordinates along one of its axes.
Coordinate reread_dynamic(Builder& builder, const Coordinate& coordinate, Label label,
                          const Coordinate& replacement, const std::vector<Label>& labels, Extents extents) {
  const IndexArray& index = *coordinate.index;
  std::vector<Coordinate> at;
  for (Label axis : index.labels) at.push_back(axis == label ? replacement : Coordinate::of(axis));
  return dynamic_table(labels, Recorder(builder).gather(index.value, at, labels, extents));
}

/// offset + sum of strides + stride * (dynamic table), as a dynamic table.
Coordinate add_to_dynamic(Builder& builder, const Coordinate& affine, std::int64_t stride,
                          const Coordinate& table, const std::vector<Label>& labels, Extents extents) {
  Recorder recorder(builder);
  Value position = recorder.aligned({table.index->value, table.index->labels}, labels);
  if (stride != 1)
    position = recorder.multiply(position, recorder.scalar(static_cast<double>(stride), DType::i64));
  return dynamic_table(labels, recorder.add(position_value(builder, affine, labels, extents), position));
}

}  // namespace

Value position_value(Builder& builder, const Coordinate& coordinate, const std::vector<Label>& labels,
                     Extents extents) {
  Recorder recorder(builder);
  Shape shape;
  for (Label label : labels) shape.push_back(extents[label]);
  if (!coordinate.is_dynamic()) {
    std::vector<std::int64_t> numbers;
    for_each_assignment(labels, extents, [&](std::span<const std::int64_t> assignment) {
      numbers.push_back(position(coordinate, assignment, extents));
    });
    return builder.constant(Tensor::of<std::int64_t>(shape, std::span<const std::int64_t>(numbers)));
  }
  Value value = recorder.aligned({coordinate.index->value, coordinate.index->labels}, labels);
  Integers all_axes;
  for (std::size_t i = 0; i < labels.size(); ++i) all_axes.push_back(static_cast<std::int64_t>(i));
  return recorder.type(value).shape == shape ? value : recorder.broadcast(value, shape, all_axes);
}

Coordinate substituted(Builder& builder, const Coordinate& coordinate, Label label,
                       const Coordinate& replacement, Extents extents) {
  if (!contains(coordinate, label)) return coordinate;
  const std::vector<Label> labels = merged(without(labels_of(coordinate), label), labels_of(replacement));
  if (coordinate.is_dynamic() || (coordinate.index && replacement.is_dynamic())) {
    Coordinate table = coordinate;
    if (!coordinate.is_dynamic())
      table = dynamic_table(coordinate.index->labels,
                            position_value(builder, coordinate, coordinate.index->labels, extents));
    return reread_dynamic(builder, table, label, replacement, labels, extents);
  }
  if (coordinate.index) return tabulated(coordinate, label, replacement, labels, extents);

  Coordinate rest = coordinate;
  auto place = std::find_if(rest.strides.begin(), rest.strides.end(),
                            [&](const Stride& s) { return s.label == label; });
  const std::int64_t stride = place->stride;
  rest.strides.erase(place);
  if (replacement.is_affine()) {
    add_affine(rest, replacement, stride);
    return rest;
  }
  if (rest.is_fixed() && rest.offset == 0 && stride == 1) return replacement;
  if (replacement.is_dynamic()) return add_to_dynamic(builder, rest, stride, replacement, labels, extents);
  return tabulated(coordinate, label, replacement, labels, extents);
}

Label RawTerm::add_label(std::int64_t extent) {
  extents.push_back(extent);
  is_live.push_back(true);
  return static_cast<Label>(extents.size() - 1);
}

void RawTerm::visit_coordinates(const std::function<void(Coordinate&)>& visit) {
  for (auto* list : {&out, &in})
    for (Coordinate& coordinate : *list) visit(coordinate);
  for (auto* list : {&values, &masks})
    for (Access& access : *list)
      for (Coordinate& coordinate : access.at) visit(coordinate);
  for (Equation& equation : equations) visit(equation.left), visit(equation.right);
}

void RawTerm::substitute(Builder& builder, Label label, const Coordinate& replacement) {
  require(!contains(replacement, label), "a label is substituted by itself");
  is_live[label] = false;
  const Coordinate copy = replacement;  // it may be one of the coordinates that change
  visit_coordinates([&](Coordinate& coordinate) {
    if (contains(coordinate, label)) coordinate = substituted(builder, coordinate, label, copy, extents);
  });
}

}  // namespace loipe
