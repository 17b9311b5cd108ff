// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "orders/published/edge_algebra.h"
#include "orders/published/graph_spec.h"

namespace loipe::published {

/// The edges of one vertex before any elimination, one per operand in order;
/// type none where there is no edge (a literal, an operand of stop_gradient).
/// `operand_shapes` has the shape of every operand, literals included.
///
/// The rules are those of the AlphaGrad reference implementation, oddities
/// included: a partial of add or sub counts as a stored value, a matrix times
/// a scalar as a diagonal of rows. A primitive that it does not know is
/// elementwise. Arrays of rank above 2 are Unsupported.
std::vector<Edge> local_edges(const VertexSpec& vertex, std::span<const Shape> operand_shapes);

}  // namespace loipe::published
