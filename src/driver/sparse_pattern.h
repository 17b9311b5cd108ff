// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/sparse_pattern.h>
#include <loipe/tensor.h>

namespace loipe {

/// The entries of a dense block, or of [examples] blocks, at the positions: shape
/// [nnz] or [examples, nnz].
Tensor values_at(const SparsePattern& pattern, const Tensor& dense, bool has_examples);

}  // namespace loipe
