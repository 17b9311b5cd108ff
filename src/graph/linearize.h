// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "graph/comp_graph.h"
#include "ir/builder.h"
#include "jacobian/recorder.h"

namespace loipe {

/// The computational graph of a program by the arguments at the positions `wrt`.
/// The builder must hold the program's nodes (with the same numbers); the values
/// of local Jacobians are added to it. Vertices that no independent influences or
/// that influence no output are pruned: they are not in the graph. UserError for
/// an argument that is not floating; Unsupported when a needed op has no rule.
CompGraph linearize(Recorder& recorder, const Program& program, const std::vector<std::size_t>& wrt);

}  // namespace loipe
