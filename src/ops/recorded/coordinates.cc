// SPDX-License-Identifier: Apache-2.0
#include "ops/recorded/coordinates.h"

#include <cstdlib>

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

}  // namespace loipe::ops
