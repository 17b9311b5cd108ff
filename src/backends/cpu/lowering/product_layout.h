// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/lowering/contraction.h"

// How the factors of products lie in memory, and copies of those that lie badly.

namespace loipe::cpu {

/// The distance of neighbours along the label; 0 where the factor lacks it.
std::int64_t stride_of(const Factor& factor, Label label);

/// The summed labels in the order in which their terms are added: by distance in the factor with more labels,
/// the farthest first. In a tile distances are shorter than in the whole, but of one factor they have the
/// same order; those of two factors together need not.
std::vector<Label> term_order(const Factor& a, const Factor& b, const std::vector<Label>& result);

/// A copy whose axes stand in the order of their strides in `other`, those that `other`
/// lacks first: its neighbours are then neighbours here.
Factor rearranged(Lowering& lowering, const Factor& factor, const Factor& other, Extents extents);

/// The factor of a matrix product, copied if its neighbours in memory lie neither along its terms nor
/// along its vectors, so that a matrix would be read with a line of memory for each
/// element. The terms keep their order, on which the bits of sums depend.
Factor with_near_matrices(Lowering& lowering, const Factor& factor, const Factor& other,
                          const std::vector<Label>& result, Extents extents, const StridedView& out);

}  // namespace loipe::cpu
