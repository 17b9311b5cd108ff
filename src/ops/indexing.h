// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/attributes.h"

namespace loipe::ops {

/// How a row-major tensor is read along the axes of a loop nest: the element at
/// index i lies at position offset + sum over axes of strides[axis] * i[axis].
/// Transposing, broadcasting (stride 0), slicing and padding are all choices of
/// these numbers.
struct View {
  Integers strides;
  std::int64_t offset = 0;
};

/// The distance between neighbours along each axis of a row-major tensor.
Integers row_major_strides(std::span<const std::int64_t> shape);

/// Calls visit(positions), one position per view, for every index of the loop
/// nest in row-major order.
template <std::size_t N, class Visit>
void for_each_index(std::span<const std::int64_t> extents, const std::array<View, N>& views, Visit&& visit) {
  if (element_count(extents) == 0) return;
  Integers index(extents.size(), 0);
  std::array<std::int64_t, N> offsets;
  for (std::size_t k = 0; k < N; ++k) offsets[k] = views[k].offset;
  std::size_t axis;
  do {
    std::array<std::size_t, N> positions;
    for (std::size_t k = 0; k < N; ++k) positions[k] = static_cast<std::size_t>(offsets[k]);
    visit(positions);
    // One step of an odometer: `axis` ends one past the axis that moved, at 0 when all are done.
    for (axis = extents.size(); axis > 0; --axis) {
      const std::size_t a = axis - 1;
      for (std::size_t k = 0; k < N; ++k) offsets[k] += views[k].strides[a];
      if (++index[a] < extents[a]) break;
      for (std::size_t k = 0; k < N; ++k) offsets[k] -= views[k].strides[a] * extents[a];
      index[a] = 0;
    }
  } while (axis > 0);
}

}  // namespace loipe::ops
