// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/program.h"

namespace loipe::cpu {

/// How one axis of a node's result runs through its operands: the slice of the result
/// at i is the op applied to the slices of the operands at i.
struct AxisFlow {
  static constexpr std::int64_t kWhole = -1;
  /// Per operand its axis, or kWhole: every slice of the result wants all of it.
  std::vector<std::int64_t> operand_axes;
  /// A label of a scatter that stands for the axis and also in other coordinates, which
  /// a slice has to shift by where it starts.
  std::optional<std::uint32_t> shifted_label = {};
};

/// The flow of axis `axis` (of extent above 1), or nothing when slices of the result
/// do not come from slices of the operands, or the node has no kernel.
std::optional<AxisFlow> axis_flow(const Program& program, Value node, std::int64_t axis);

/// The fewest elements that a slice should have for the node's sake. Where the axis belongs to one
/// factor of a sum of products alone, it makes rows or columns of a matrix product: less
/// than a register tile of them wastes it. And a slice of one changes which axes
/// are neighbours, and with them, for some, the order of a sum: see merges_sums.
std::int64_t shortest_slice(const Program& program, Value node, std::int64_t axis, const AxisFlow& flow);

/// All later axes have extent 1, and an earlier one has not.
bool is_innermost(const Shape& shape, std::int64_t axis);

/// The node's attributes when its axis has `extent` elements instead. A scatter with a
/// shifted label reads its positions from one more operand, the last.
Attributes sliced_attributes(const Program& program, Value node, std::int64_t axis, const AxisFlow& flow,
                             std::int64_t extent);

}  // namespace loipe::cpu
