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

/// The same coordinates for a local Jacobian of the node: index operands that are
/// constants become static tables, others refer to their SSA value.
std::vector<Coordinate> coordinates_of_node(const JacobianContext& context, const std::string& text,
                                            const Integers& extents);

}  // namespace loipe::ops
