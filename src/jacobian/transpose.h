// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jacobian/local_jacobian.h"
#include "jacobian/recorder.h"

namespace loipe {

/// The Jacobian d(out)/d(in) with its sides exchanged, but for the first `kept` axes of out,
/// which stay in front: of shape kept + in by the other axes of out. Structure alone, nothing
/// is computed unless it is implicit.
LocalJacobian transposed(Recorder& recorder, const LocalJacobian& jacobian, const Shape& out, const Shape& in,
                         std::size_t kept = 0);

}  // namespace loipe
