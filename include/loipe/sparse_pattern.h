// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace loipe {

/// The positions at which a Jacobian block can differ from zero, whatever the inputs.
/// Rows run over the output's elements, columns over the argument's, both row-major.
/// Sorted by row, then column; each position once.
struct SparsePattern {
  std::int64_t row_count = 0;
  std::int64_t column_count = 0;
  std::vector<std::int64_t> rows, columns;

  std::int64_t entry_count() const { return static_cast<std::int64_t>(rows.size()); }
  bool operator==(const SparsePattern&) const = default;
};

}  // namespace loipe
