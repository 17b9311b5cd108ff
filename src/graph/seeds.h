// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "graph/comp_graph.h"

namespace loipe {

// Products with a Jacobian are Jacobians of a larger graph.
//
// J M is the derivative of f(x + M t) by t at t = 0: one new independent t, with an edge
// to every x_k whose local Jacobian is M_k. U J is the derivative of U (f(x) - y), with y
// the value of f at x: one new dependent s behind every output. The vertices in between
// are then intermediate, so eliminating them in any order gives the product, and each
// order at its own cost: t first pushes directions through the graph (JVP), s first pulls
// them (VJP), both last build J and multiply. A seed is any local Jacobian, so the
// identity, diagonals and masks stay structure in the product too.

/// Puts the independent `t`, a value of 0, before the independents x_k; seeds[k] is
/// d(x_k)/dt. Returns the x_k, which are intermediate from now on.
std::vector<VertexId> seed_independents(CompGraph& graph, Value t, std::vector<LocalJacobian> seeds);

/// Puts the dependent `s`, a value of 0, behind the dependents y_i; seeds[i] is ds/d(y_i).
/// Returns the y_i, which are intermediate from now on.
std::vector<VertexId> seed_dependents(CompGraph& graph, Value s, std::vector<LocalJacobian> seeds);

}  // namespace loipe
