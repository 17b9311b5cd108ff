// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"
#include "orders/published/graph_spec.h"

namespace loipe::published {

/// The published graphs have at most 146 vertices; the simulator keeps them in arrays
/// that are quadratic in the number of vertices.
inline constexpr int kMostVertices = 4096;

/// A program as the published counting rule sees it. Vertices are numbered as by
/// Program::vertex_numbers; constants are literals, and ops have their JAX names.
/// An output that is an argument or a constant is no vertex and is left out: no
/// elimination concerns it. Unsupported above kMostVertices.
GraphSpec published_spec(const Program& program);

}  // namespace loipe::published
