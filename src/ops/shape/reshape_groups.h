// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <vector>

namespace loipe::ops {

/// A smallest run of axes that hold the same elements in both shapes of a reshape,
/// e.g. (6) and (2,3) in (4,6) -> (4,2,3).
///
/// When the axis boundaries of both sides form one mixed radix system, the group
/// is cut into digits, and the position along an axis of either side is the sum of
/// stride * digit over its digits. (4,6) -> (6,4) has no common digits: the
/// boundaries are at 6 and at 4 elements, and neither divides the other.
struct ReshapeGroup {
  struct Axes {
    std::size_t first, last;  ///< axes [first, last) of that side
  };
  /// A factor of one axis of the operand and of one axis of the result.
  struct Digit {
    std::int64_t extent;
    std::size_t in_axis, out_axis;
    std::int64_t in_stride, out_stride;
  };

  Axes in, out;
  std::int64_t extent;        ///< elements of the group
  std::vector<Digit> digits;  ///< outermost first; empty when there are no common digits
};

/// The groups of a reshape, outermost first. Axes of extent 1 are in no digit.
/// Both shapes must have the same, non-zero number of elements.
std::vector<ReshapeGroup> reshape_groups(const Shape& in, const Shape& out);

}  // namespace loipe::ops
