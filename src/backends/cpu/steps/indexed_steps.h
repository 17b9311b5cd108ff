// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/step.h"
#include "backends/cpu/strided_view.h"
#include "jacobian/coordinate.h"

namespace loipe::cpu {

/// Positions in a contiguous tensor as a function of labels: one coordinate per axis.
/// Index arrays are views over their labels, numbered as the coordinates say.
struct IndexedPlaces {
  Shape shape;
  std::vector<Coordinate> coordinates;
  std::vector<StridedView> index_arrays;  ///< by operand number; others are unused
};

/// out[labels] = source[places(labels)], 0 for places outside; all contiguous.
std::unique_ptr<Step> make_indexed_read_step(IndexedPlaces places, const StridedView& source,
                                             const StridedView& out);

/// out[places(labels)] += value[labels] in row-major order, nothing for places
/// outside. The value runs along the labels; out is contiguous. Where it is known to hold
/// zeros, the first value to come is stored as it is, -0 too.
std::unique_ptr<Step> make_indexed_add_step(IndexedPlaces places, const StridedView& value,
                                            const StridedView& out, bool is_zero);

}  // namespace loipe::cpu
