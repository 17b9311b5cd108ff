// SPDX-License-Identifier: Apache-2.0
#include "ops/recorded/coordinates.h"

#include <algorithm>
#include <cstdlib>

#include "jacobian/raw_term.h"
#include "ops/emit.h"
#include "ops/shape_checks.h"
#include "tensor/visit.h"

namespace loipe::ops {

namespace {

void check_index_array(const std::string& text, const IndexArray& index, const Integers& extents,
                       std::span<const TensorType* const> operands) {
  if (index.value.index == 0 || index.value.index >= operands.size())
    throw UserError("coordinates \"" + text + "\" refer to operand #" + std::to_string(index.value.index) +
                    ", which is not an index operand");
  const TensorType& type = *operands[index.value.index];
  Shape wanted;
  for (Label label : index.labels) wanted.push_back(extents[label]);
  if (!is_integer(type.dtype) || type.shape != wanted)
    throw UserError("index operand #" + std::to_string(index.value.index) + " is " + to_string(type) +
                    ", expected integers of shape " + to_string(wanted));
}

/// Positions outside an axis are legal, but far out of every axis they would overflow.
constexpr std::int64_t kFarthest = std::int64_t{1} << 50;

bool is_far(std::int64_t number, std::int64_t times) {
  return number < -kFarthest || number > kFarthest || (times > 0 && std::abs(number) > kFarthest / times);
}

void check_range(const std::string& text, const Coordinate& coordinate, const Integers& extents) {
  bool too_far = is_far(coordinate.offset, 1);
  for (const Stride& s : coordinate.strides) too_far = too_far || is_far(s.stride, extents[s.label]);
  if (too_far) throw UserError("coordinates \"" + text + "\" reach positions beyond 2^50");
}

/// Not Tensor::at, which rounds large integers.
std::int64_t integer_at(const Tensor& tensor, std::int64_t position) {
  return visit_dtype(tensor.dtype(), [&]<class T>(T) {
    return element_cast<std::int64_t>(tensor.elements<T>()[static_cast<std::size_t>(position)]);
  });
}

}  // namespace

std::vector<Coordinate> checked_coordinates(std::string_view attribute, const std::string& text,
                                            std::size_t rank, const Integers& extents,
                                            std::span<const TensorType* const> operands) {
  std::vector<Coordinate> coordinates = parse_coordinates(text);
  if (coordinates.size() != rank)
    throw UserError(std::string(attribute) + "=\"" + text + "\" has " + std::to_string(coordinates.size()) +
                    " coordinates, expected " + std::to_string(rank));
  for (const Coordinate& coordinate : coordinates) {
    for (Label label : labels_of(coordinate))
      if (label >= extents.size())
        throw UserError(std::string(attribute) + "=\"" + text + "\" uses label " + label_name(label) +
                        ", but there are " + std::to_string(extents.size()) + " extents");
    check_range(text, coordinate, extents);
    if (coordinate.index) check_index_array(text, *coordinate.index, extents, operands);
  }
  return coordinates;
}

std::int64_t evaluated_position(const Coordinate& coordinate, std::span<const std::int64_t> at,
                                const Integers& extents, std::span<const Tensor* const> operands,
                                std::int64_t axis_extent) {
  std::int64_t result = coordinate.offset;
  for (const Stride& s : coordinate.strides) result += s.stride * at[s.label];
  if (coordinate.index) {
    std::int64_t row = 0;
    for (Label label : coordinate.index->labels) row = row * extents[label] + at[label];
    result = integer_at(*operands[coordinate.index->value.index], row);
  }
  return result >= 0 && result < axis_extent ? result : -1;
}

namespace {

/// Index operands that are constants become static tables, others refer to their SSA value.
std::vector<Coordinate> coordinates_of_node(const JacobianContext& context, const std::string& text,
                                            const Integers& extents) {
  std::vector<Coordinate> coordinates = parse_coordinates(text);
  for (Coordinate& coordinate : coordinates) {
    if (!coordinate.index) continue;
    const Value operand = context.operand(coordinate.index->value.index);
    if (&context.builder.program().op(operand) == &constant_op()) {
      const Tensor& table = context.builder.program().attributes(operand).tensor("value");
      std::vector<std::int64_t> numbers;
      for (std::int64_t i = 0; i < table.element_count(); ++i) numbers.push_back(integer_at(table, i));
      coordinate = simplified(Coordinate::table(coordinate.index->labels, std::move(numbers)), extents);
    } else {
      coordinate.index->value = operand;
    }
  }
  return coordinates;
}

bool leaves(const Coordinate& coordinate, std::int64_t axis_extent, Extents extents) {
  std::int64_t low = coordinate.offset, high = coordinate.offset;
  for (const Stride& s : coordinate.strides) (s.stride > 0 ? high : low) += s.stride * (extents[s.label] - 1);
  if (coordinate.index) {
    const std::vector<std::int64_t>& numbers = *coordinate.index->numbers;
    if (numbers.empty()) return false;
    const auto [least, most] = std::ranges::minmax(numbers);
    low = least;
    high = most;
  }
  return low < 0 || high >= axis_extent;
}

/// Entries exist where the index, which only the run knows, is inside the axis.
void mask_outside(Builder& builder, RawTerm& term, const IndexArray& index, std::int64_t axis_extent) {
  const Value inside = logical_and(builder, gt(builder, index.value, -1.0),
                                   lt(builder, index.value, static_cast<double>(axis_extent)));
  Access access{inside, {}};
  for (Label label : index.labels) access.at.push_back(Coordinate::of(label));
  term.masks.push_back(std::move(access));
}

/// Puts the assignments at which all these static coordinates are inside their axes under
/// one new label. False when there are none.
bool cut_outside(Builder& builder, RawTerm& term, const std::vector<Coordinate>& coordinates,
                 const Shape& shape) {
  std::vector<std::size_t> leaving;
  std::vector<Label> labels;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (!coordinates[axis].is_dynamic() && leaves(coordinates[axis], shape[axis], term.extents)) {
      leaving.push_back(axis);
      for_each_label(coordinates[axis], [&](Label label) { labels.push_back(label); });
    }
  if (leaving.empty()) return true;
  std::ranges::sort(labels);
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  std::vector<std::vector<std::int64_t>> inside(labels.size());
  std::int64_t count = 0;
  const std::vector<std::int64_t> extents = term.extents;
  for_each_assignment(labels, extents, [&](std::span<const std::int64_t> at) {
    for (std::size_t axis : leaving)
      if (const std::int64_t p = position(coordinates[axis], at, extents); p < 0 || p >= shape[axis]) return;
    for (std::size_t i = 0; i < labels.size(); ++i) inside[i].push_back(at[labels[i]]);
    ++count;
  });
  if (count == 0) return false;
  const Label t = term.add_label(count);
  for (std::size_t i = 0; i < labels.size(); ++i)
    term.substitute(builder, labels[i],
                    simplified(Coordinate::table({t}, std::move(inside[i])), term.extents));
  return true;
}

}  // namespace

LocalJacobian indexed_jacobian(JacobianContext& context, IndexedSide side, const std::string& text,
                               const Shape& shape, const std::vector<Label>& plain, const Integers& extents) {
  RawTerm term;
  for (std::int64_t extent : extents) term.add_label(extent);
  const std::vector<Coordinate> indexed = coordinates_of_node(context, text, extents);
  (side == IndexedSide::out ? term.out : term.in) = indexed;
  for (Label label : plain) (side == IndexedSide::out ? term.in : term.out).push_back(Coordinate::of(label));
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (indexed[axis].is_dynamic()) mask_outside(context.builder, term, *indexed[axis].index, shape[axis]);
  if (!cut_outside(context.builder, term, indexed, shape)) return LocalJacobian::zero();
  Recorder recorder(context.builder, context.dtype());
  LocalJacobian result;
  if (auto normal = std::move(term).normalised(recorder)) result.terms.push_back(std::move(*normal));
  return result;
}

}  // namespace loipe::ops
