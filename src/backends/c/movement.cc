// SPDX-License-Identifier: Apache-2.0
#include "backends/c/movement.h"

#include <algorithm>

#include "ir/op_def.h"
#include "jacobian/coordinate.h"

namespace loipe::c {

namespace {

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// The extents that are not 1.
Shape squeezed(const Shape& shape) {
  Shape result = shape;
  std::erase(result, 1);
  return result;
}

/// Whether every position of every coordinate is known before the run and inside its axis.
bool is_static(const Program& program, Value v) {
  const Integers& extents = program.attributes(v).integers("extents");
  const std::vector<Coordinate> from = parse_coordinates(program.attributes(v).text("from"));
  const Shape& shape = program.shape(program.operands(v)[0]);
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis].index) return false;
    std::int64_t low = from[axis].offset, high = low;
    for (const Stride& s : from[axis].strides)
      (s.stride > 0 ? high : low) += s.stride * (extents[s.label] - 1);
    if (low < 0 || high >= shape[axis]) return false;
  }
  return true;
}

Indices reshaped(const Shape& from, const Shape& to, const Indices& at) {
  Indices kept, result;
  for (std::size_t axis = 0; axis < from.size(); ++axis)
    if (from[axis] != 1) kept.push_back(at[axis]);
  std::size_t next = 0;
  for (std::int64_t extent : to) result.push_back(extent == 1 ? Affine(0) : kept[next++]);
  return result;
}

Indices gathered(const Attributes& attributes, const Indices& at) {
  Indices result;
  for (const Coordinate& coordinate : parse_coordinates(attributes.text("from"))) {
    Affine index(coordinate.offset);
    for (const Stride& s : coordinate.strides) index.add(at[s.label], s.stride);
    result.push_back(index);
  }
  return result;
}

Indices sliced(const Attributes& attributes, const Indices& at) {
  Indices result;
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    Affine index(attributes.integers("start")[axis]);
    index.add(at[axis], attributes.has("stride") ? attributes.integers("stride")[axis] : 1);
    result.push_back(index);
  }
  return result;
}

}  // namespace

bool is_movement(const Program& program, Value v) {
  static constexpr std::string_view kOps[] = {"after", "broadcast_in_dim", "reverse",
                                              "slice", "stop_gradient",    "transpose"};
  const std::string_view op = program.op(v).name.value;
  if (op == "reshape") return squeezed(program.shape(v)) == squeezed(program.shape(program.operands(v)[0]));
  if (op == "gather") return is_static(program, v);
  return std::ranges::find(kOps, op) != std::end(kOps);
}

Indices moved(const Program& program, Value v, const Indices& at) {
  const std::string_view op = program.op(v).name.value;
  const Attributes& attributes = program.attributes(v);
  const Shape &shape = program.shape(v), &from = program.shape(program.operands(v)[0]);
  if (op == "reshape") return reshaped(shape, from, at);
  if (op == "gather") return gathered(attributes, at);
  if (op == "slice") return sliced(attributes, at);
  Indices result = at;
  if (op == "reverse")
    for (std::int64_t axis : attributes.integers("axes")) {
      result[size(axis)] = shape[size(axis)] - 1;
      result[size(axis)].add(at[size(axis)], -1);
    }
  if (op == "transpose") {
    const Integers& permutation = attributes.integers("permutation");
    for (std::size_t axis = 0; axis < at.size(); ++axis) result[size(permutation[axis])] = at[axis];
  }
  if (op == "broadcast_in_dim") {
    result.clear();
    const Integers& dimensions = attributes.integers("dimensions");
    for (std::size_t axis = 0; axis < from.size(); ++axis)
      result.push_back(from[axis] == 1 ? Affine(0) : at[size(dimensions[axis])]);
  }
  return result;
}

}  // namespace loipe::c
