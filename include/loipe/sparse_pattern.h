// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <cstdint>
#include <vector>

namespace loipe {

/// The positions at which a Jacobian block can differ from zero, whatever the inputs.
/// Rows run over the output's elements, columns over the argument's, both row-major.
/// Sorted by row, then column; each position once. It belongs to the compiled function:
/// every run fills the same entries, so a solver analyses the pattern once and then only
/// takes new values.
struct SparsePattern {
  std::int64_t row_count = 0;
  std::int64_t column_count = 0;
  std::vector<std::int64_t> rows, columns;

  std::int64_t entry_count() const { return static_cast<std::int64_t>(rows.size()); }
  bool operator==(const SparsePattern&) const = default;
};

/// Index tensors of a pattern: i32 if its extents and number of entries fit, else i64.

/// Coordinate lists: row and column of every entry.
struct CooIndices {
  Tensor rows, columns;  ///< [nnz]
};
CooIndices coo_indices(const SparsePattern& pattern);

/// Compressed sparse rows: entries indptr[r]..indptr[r+1]-1 are row r's, and values stand
/// in the order of the pattern.
struct CsrIndices {
  Tensor indptr;   ///< [row_count + 1]
  Tensor indices;  ///< [nnz], columns
};
CsrIndices csr_indices(const SparsePattern& pattern);

/// Compressed sparse columns: entries indptr[c]..indptr[c+1]-1 are column c's; the value
/// of entry e is that of the pattern's entry order[e].
struct CscIndices {
  Tensor indptr;   ///< [column_count + 1]
  Tensor indices;  ///< [nnz], rows
  Tensor order;    ///< [nnz]
};
CscIndices csc_indices(const SparsePattern& pattern);

}  // namespace loipe
