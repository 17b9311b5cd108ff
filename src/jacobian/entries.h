// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jacobian/recorder.h"
#include "jacobian/sparse_pattern.h"

namespace loipe {

/// The entries of a block at the positions of its pattern, in the pattern's order:
/// [nnz], or [examples, nnz]. Recorded straight from the terms; no array of the block's
/// dense size is ever formed.
Value entries(Recorder& recorder, const LocalJacobian& block, const BlockShape& shape,
              const SparsePattern& pattern, DType dtype);

}  // namespace loipe
