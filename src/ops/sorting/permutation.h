// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jacobian/local_jacobian.h"

namespace loipe::ops {

/// The Jacobian of an op that permutes the rows of its operand: entry i of a row of the result
/// is entry places[i] of that row. It is implicit, a gather from the right and a scatter from the
/// left: as a term, whose coordinate is the index array, it would be solved for by reading the
/// next factor at every place, where a scattered row is an ordinary one.
LocalJacobian permutation_jacobian(const JacobianContext& context, Value places);

}  // namespace loipe::ops
