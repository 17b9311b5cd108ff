// SPDX-License-Identifier: Apache-2.0
// gather and scatter whose coordinates only move elements. Both relate the elements
// of a tensor ("the far side", the operand of gather or the result of scatter) to
// the values of labels (extents), one coordinate per axis of the far side:
//
//   reshape    the row-major position on the far side equals that of the labels,
//              sum over axes of row_stride[axis] * coordinate[axis]
//                = sum over labels of label_stride[l] * l  for all values;
//   transpose  coordinate k is label p(k), a permutation;
//   broadcast  (gather) coordinate k is label d(k), increasing: further labels repeat.
#include <algorithm>
#include <cmath>

#include "jacobian/coordinate.h"
#include "ops/indexing.h"
#include "ops/op_list.h"
#include "ops/shape_checks.h"
#include "passes/algebraic/simplifier.h"

namespace loipe::passes {

namespace {

using namespace ops;

/// Whether an affine coordinate stays in 0..axis_extent-1 for all values of the labels.
bool is_inside(const Coordinate& coordinate, std::int64_t axis_extent, const Integers& extents) {
  std::int64_t low = coordinate.offset, high = coordinate.offset;
  for (const Stride& stride : coordinate.strides)
    (stride.stride < 0 ? low : high) += stride.stride * (extents[stride.label] - 1);
  return low >= 0 && high < axis_extent;
}

/// Whether the far side is a reshape of a tensor whose row-major strides are
/// `label_strides` along the labels. As many elements at positions that are all
/// different fill the far side.
bool is_reshape(const std::vector<Coordinate>& coordinates, const Shape& far_shape, const Integers& extents,
                const Integers& label_strides) {
  if (element_count(far_shape) != element_count(extents)) return false;
  const Integers row_strides = row_major_strides(far_shape);
  Integers strides(extents.size(), 0);
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
    if (!coordinates[axis].is_affine() || !is_inside(coordinates[axis], far_shape[axis], extents))
      return false;
    offset += row_strides[axis] * coordinates[axis].offset;
    for (const Stride& s : coordinates[axis].strides) strides[s.label] += row_strides[axis] * s.stride;
  }
  for (std::size_t label = 0; label < extents.size(); ++label)
    if (extents[label] > 1 && strides[label] != label_strides[label]) return false;
  return offset == 0;
}

/// The label of each coordinate, when each is a whole axis and none occurs twice.
std::optional<Integers> distinct_labels(const std::vector<Coordinate>& coordinates, const Shape& far_shape,
                                        const Integers& extents) {
  Integers labels;
  for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
    if (!is_bare(coordinates[axis], far_shape[axis], extents)) return std::nullopt;
    const auto label = static_cast<std::int64_t>(coordinates[axis].label());
    if (std::ranges::find(labels, label) != labels.end()) return std::nullopt;
    labels.push_back(label);
  }
  return labels;
}

Integers inverse(const Integers& permutation) {
  Integers result(permutation.size());
  for (std::size_t k = 0; k < permutation.size(); ++k)
    result[index_of(permutation[k])] = static_cast<std::int64_t>(k);
  return result;
}

std::optional<Value> gather(Simplifier& s, const Call& c) {
  const Value source = c.operands[0];
  const Integers& extents = c.attributes.integers("extents");
  const std::vector<Coordinate> from = parse_coordinates(c.attributes.text("from"));
  if (is_reshape(from, s.shape(source), extents, row_major_strides(extents)))
    return s.emit(op_reshape, {source}, {{"shape", extents}});
  const auto labels = distinct_labels(from, s.shape(source), extents);
  if (!labels) return std::nullopt;
  if (labels->size() == extents.size())
    return s.emit(op_transpose, {source}, {{"permutation", inverse(*labels)}});
  if (std::ranges::is_sorted(*labels))
    return s.emit(op_broadcast_in_dim, {source}, {{"shape", extents}, {"dimensions", *labels}});
  return std::nullopt;
}

/// Scattering onto +0 is scattering onto nothing.
Value without_base(Simplifier& s, const Call& c) {
  std::vector<Coordinate> to = parse_coordinates(c.attributes.text("to"));
  for (Coordinate& coordinate : to)
    if (coordinate.index) --coordinate.index->value.index;
  std::vector<Value> operands(c.operands.begin(), c.operands.end());
  operands.erase(operands.begin() + 1);
  Attributes attributes;
  for (const auto& [name, value] : c.attributes.entries())
    if (name != "base") attributes.set(name, value);
  attributes.set("to", print_coordinates(to));
  return s.emit(op_scatter, operands, attributes);
}

/// The scattered value as a whole tensor of the result's shape, when it fills it.
std::optional<Value> filling(Simplifier& s, const Call& c) {
  const Value value = c.operands[0];
  const Integers &extents = c.attributes.integers("extents"), &axes = c.attributes.integers("axes");
  if (axes.size() != extents.size()) return std::nullopt;
  const std::vector<Coordinate> to = parse_coordinates(c.attributes.text("to"));
  const Integers value_strides = row_major_strides(s.shape(value)), axis_of_label = inverse(axes);
  Integers label_strides;
  for (std::int64_t axis : axis_of_label) label_strides.push_back(value_strides[index_of(axis)]);
  if (is_reshape(to, c.type.shape, extents, label_strides))
    return s.emit(op_reshape, {value}, {{"shape", c.type.shape}});
  const auto labels = distinct_labels(to, c.type.shape, extents);
  if (!labels || labels->size() != extents.size()) return std::nullopt;
  Integers permutation;
  for (std::int64_t label : *labels) permutation.push_back(axis_of_label[index_of(label)]);
  return s.emit(op_transpose, {value}, {{"permutation", permutation}});
}

std::optional<Value> scatter(Simplifier& s, const Call& c) {
  const bool has_base = c.attributes.has("base");
  if (has_base) {
    const auto number = s.uniform(c.operands[1]);
    if (number == 0 && !std::signbit(*number)) return without_base(s, c);
  }
  const auto value = filling(s, c);
  if (!value || !has_base) return value;
  return s.emit(op_add, {c.operands[1], *value});
}

}  // namespace

std::span<const RuleOfOp> indexing_rules() {
  static constexpr RuleOfOp kRules[] = {{&op_gather, gather}, {&op_scatter, scatter}};
  return kRules;
}

}  // namespace loipe::passes
