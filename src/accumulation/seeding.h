// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "accumulation/accumulate.h"

namespace loipe {

/// The name of the argument that holds a seed: "tangent.x", "cotangent.0".
std::string tangent_name(const std::string& argument);
std::string cotangent_name(std::size_t output);

/// Makes the seeds of the request arguments of the program and hangs them on its graph
/// (graph/seeds.h). Returns the vertices that are cheapest eliminated before all others:
/// those where the directions are no more than the elements, so that few directions and not
/// all elements flow through the graph.
std::vector<VertexId> add_seeds(Recorder& recorder, const Program& program,
                                const AccumulationRequest& request, CompGraph& graph);

}  // namespace loipe
