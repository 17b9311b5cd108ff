// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jacobian/local_jacobian.h"
#include "jacobian/recorder.h"

namespace loipe {

/// d(out)/d(in), where the first axis of both runs over the same examples and
/// examples do not mix, restricted to equal examples: the first axis of in is
/// dropped, so the result maps in without it to out. Where the terms tie the two
/// axes, which they do after any order, this only relabels.
LocalJacobian batch_diagonal(Recorder& recorder, const LocalJacobian& jacobian, const Shape& out,
                             const Shape& in);

}  // namespace loipe
