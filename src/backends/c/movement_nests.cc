// SPDX-License-Identifier: Apache-2.0
// Ops that move elements to or from places that are not affine in an index, or of which only a part
// of the result comes from one operand.
#include <algorithm>

#include "backends/c/block.h"
#include "backends/c/expression.h"
#include "backends/c/nests.h"
#include "jacobian/coordinate.h"

namespace loipe::c {

namespace {

/// operands[k] lies at an offset along the axis; every part is a nest of its own.
void print_concatenate(Block& b) {
  const auto axis = static_cast<std::size_t>(b.attributes().integer("axis"));
  std::int64_t start = 0;
  for (std::size_t k = 0; k < b.program().operands(b.node()).size(); ++k) {
    if (element_count(b.shape_of(k)) == 0) continue;
    const std::size_t depth = b.depth();
    const Indices from = b.loops(b.shape_of(k));
    Indices to = from;
    to[axis].add(start);
    const std::string x = b.load(b.operand(k), from);
    b.line(b.element(b.node(), position_of(b.shape(), to)) + " = " + x + ";");
    b.close_to(depth);
    start += b.shape_of(k)[axis];
  }
}

void fill(Block& b, const std::string& value) {
  const std::size_t depth = b.depth();
  const Affine i = b.loop(element_count(b.shape()));
  b.line(b.element(b.node(), i) + " = " + value + ";");
  b.close_to(depth);
}

/// Element i of the operand lands at low + i (interior + 1); those that land outside are cut off.
void print_pad(Block& b) {
  fill(b, b.load(b.operand(1), {}));
  const Integers &low = b.attributes().integers("low"), &interior = b.attributes().integers("interior");
  const Shape& shape = b.shape_of(0);
  Shape extents;
  Integers first;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const std::int64_t stride = interior[axis] + 1;
    first.push_back(low[axis] < 0 ? (-low[axis] + stride - 1) / stride : 0);
    const std::int64_t start = low[axis] + first[axis] * stride, end = b.shape()[axis];
    const std::int64_t room = start < end ? (end - 1 - start) / stride + 1 : 0;
    extents.push_back(std::clamp<std::int64_t>(shape[axis] - first[axis], 0, room));
  }
  if (element_count(extents) == 0) return;
  const std::size_t depth = b.depth();
  const Indices at = b.loops(extents);
  Indices from = at, to;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    from[axis].add(first[axis]);
    Affine index(low[axis]);
    index.add(from[axis], interior[axis] + 1);
    to.push_back(index);
  }
  const std::string x = b.load(b.operand(0), from);
  b.line(b.element(b.node(), position_of(b.shape(), to)) + " = " + x + ";");
  b.close_to(depth);
}

/// The index along each axis as a function of the labels, and the condition that all lie inside.
struct Place {
  Indices at;
  std::string is_inside;  ///< empty: they all do
};

Place place_of(Block& b, std::string_view attribute, const Shape& shape, const Indices& labels) {
  const Integers& extents = b.attributes().integers("extents");
  Place place;
  const std::vector<Coordinate> coordinates = parse_coordinates(b.attributes().text(attribute));
  for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
    const Coordinate& c = coordinates[axis];
    Affine index(c.offset);
    std::int64_t low = c.offset, high = c.offset;
    for (const Stride& s : c.strides) {
      index.add(labels[s.label], s.stride);
      (s.stride > 0 ? high : low) += s.stride * (extents[s.label] - 1);
    }
    if (c.index) {
      Indices own;
      for (Label label : c.index->labels) own.push_back(labels[label]);
      index = Affine::of(b.define(DType::i64, b.load(b.operand(c.index->value.index), own)));
    }
    place.at.push_back(index);
    const auto require = [&](const std::string& condition) {
      place.is_inside += (place.is_inside.empty() ? "" : " && ") + condition;
    };
    if (c.index || low < 0) require(index.text() + " >= 0");
    if (c.index || high >= shape[axis]) require(index.text() + " < " + std::to_string(shape[axis]));
  }
  return place;
}

/// Outside the operand lie zeros.
void print_gather(Block& b) {
  const std::size_t depth = b.depth();
  if (element_count(b.shape_of(0)) == 0) return fill(b, "0");
  const Indices at = b.loops(b.shape());
  const Place from = place_of(b, "from", b.shape_of(0), at);
  const std::string to = b.element(b.node(), position_of(b.shape(), at)) + " = ";
  // The operand is in memory or moved from there, so that reading it is one expression.
  const std::string x = b.load(b.operand(0), from.at);
  b.line(to + (from.is_inside.empty() ? x : from.is_inside + " ? " + x + " : 0") + ";");
  b.close_to(depth);
}

/// Adds the value where it lands, in the order of the labels.
void print_scatter(Block& b) {
  const bool has_base = b.attributes().has("base");
  const std::size_t depth = b.depth();
  if (has_base) {
    const Indices at = b.loops(b.shape());
    const std::string x = b.load(b.operand(1), at);
    b.line(b.element(b.node(), position_of(b.shape(), at)) + " = " + x + ";");
    b.close_to(depth);
  } else {
    fill(b, "0");
  }
  const Integers& extents = b.attributes().integers("extents");
  if (element_count(extents) == 0) return;
  const Indices labels = b.loops(extents);
  const Place to = place_of(b, "to", b.shape(), labels);
  Indices from;
  for (std::int64_t axis : b.attributes().integers("axes"))
    from.push_back(labels[static_cast<std::size_t>(axis)]);
  if (!to.is_inside.empty()) b.open("if (" + to.is_inside + ")");
  const std::string x = b.load(b.operand(0), from);
  const std::string sum = b.element(b.node(), position_of(b.shape(), to.at));
  if (is_integer(b.dtype())) b.line(sum + " = " + b.helper("add", b.dtype()) + "(" + sum + ", " + x + ");");
  else b.line(sum + " += " + x + ";");
  b.close_to(depth);
}

}  // namespace

std::span<const Nest> movement_nests() {
  static constexpr Nest kNests[] = {
      {"concatenate", Reads::once, print_concatenate},
      {"gather", Reads::repeated, print_gather},
      {"pad", Reads::once, print_pad},
      {"scatter", Reads::repeated, print_scatter},
  };
  return kNests;
}

}  // namespace loipe::c
