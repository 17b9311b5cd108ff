// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/sparse_pattern.h>
#include <loipe/tensor.h>

#include <cstdint>
#include <vector>

#include "jacobian/local_jacobian.h"

namespace loipe {

/// From the labels of the block's terms. Masks and values are not looked at, and an
/// axis that is indexed by a run-time value counts as dense.
SparsePattern sparse_pattern(const LocalJacobian& block, const Shape& out, const Shape& in);

/// Rows that run over [examples, elements] folded to those of one example: the
/// positions that any example has.
SparsePattern folded_over_examples(const SparsePattern& pattern, std::int64_t examples);

/// The entries of a dense block, or of [examples] blocks, at the positions: shape
/// [nnz] or [examples, nnz].
Tensor values_at(const SparsePattern& pattern, const Tensor& dense, bool has_examples);

/// Index tensors: of row and column of every entry; and per row the number of the
/// first entry, with the total at the end. i32 if all numbers fit, else i64.
struct CooIndices {
  Tensor rows, columns;
};
CooIndices coo_indices(const SparsePattern& pattern);
struct CsrIndices {
  Tensor indptr, indices;
};
CsrIndices csr_indices(const SparsePattern& pattern);

}  // namespace loipe
