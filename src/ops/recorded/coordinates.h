// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "ir/op_def.h"
#include "jacobian/coordinate.h"
#include "jacobian/local_jacobian.h"

// What gather and scatter share: coordinates in an attribute, index arrays among
// the operands.

namespace loipe::ops {

/// Parses the attribute and checks it: `rank` coordinates over labels below the
/// number of extents; #k names an integer operand whose axes are its labels.
std::vector<Coordinate> checked_coordinates(std::string_view attribute, const std::string& text,
                                            std::size_t rank, const Integers& extents,
                                            std::span<const TensorType* const> operands);

/// The position along one axis, or -1 when it lies outside 0..axis_extent-1.
std::int64_t evaluated_position(const Coordinate& coordinate, std::span<const std::int64_t> at,
                                const Integers& extents, std::span<const Tensor* const> operands,
                                std::int64_t axis_extent);

/// Which side of a local Jacobian has the coordinates of the attribute; the other one has
/// a bare label per axis.
enum class IndexedSide : std::uint8_t { out, in };

/// The local Jacobian of 1 at every assignment of the labels: `text` along the axes of
/// `shape` on one side, the labels `plain` on the other. Index operands that are constants
/// become static tables. Assignments with a position outside an axis have no entry: they
/// are cut off where positions are known, and masked where only the run knows them.
LocalJacobian indexed_jacobian(JacobianContext& context, IndexedSide side, const std::string& text,
                               const Shape& shape, const std::vector<Label>& plain, const Integers& extents);

}  // namespace loipe::ops
