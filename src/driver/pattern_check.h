// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/sparse_pattern.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/task_jacobian.h"

namespace loipe {

/// Zeros of one block. Structural zeros are positions that no term has: they hold for all
/// inputs, and elimination never computes them. Numeric zeros are entries that could
/// differ from zero and happen to be zero at the inputs of the check.
struct BlockZeros {
  std::string name;  ///< "jac.0.x"
  std::int64_t rows = 0, columns = 0;
  std::int64_t entries = 0;        ///< that can differ from zero
  std::int64_t numeric_zeros = 0;  ///< entries that are zero, in every example
};

/// Of all blocks of dense results.
std::vector<BlockZeros> block_zeros(const TaskJacobian& jacobian, std::span<const Tensor> results);

/// What a pattern that somebody declared lacks, and what it has for nothing.
struct PatternDifference {
  std::string name;
  std::int64_t missing = 0;                      ///< entries that are not declared: a solver would lose them
  std::int64_t always_zero = 0;                  ///< declared positions that are structural zeros
  std::string first_missing, first_always_zero;  ///< "(3, 4)", row and column
};

/// Both patterns of the same extents.
PatternDifference compare_patterns(const std::string& name, const SparsePattern& declared,
                                   const SparsePattern& structural);

/// Compares with the patterns in a file, named as `loipe jacobian` writes them: per block
/// `.rows` and `.cols`, or `.indptr` and `.indices`. Blocks that the file has not are left
/// out. FileError for a file that cannot be read, has no block at all, or indices that are
/// no integers, of unequal lengths, or outside the block.
std::vector<PatternDifference> compare_with_file(const TaskJacobian& jacobian,
                                                 const std::filesystem::path& path);

}  // namespace loipe
