// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "backends/cpu/steps/product_step.h"

namespace loipe::cpu {

// Blocking, for tiles of R rows and panels of 2 vectors of b:
// - depth blocks of 256: 256 rows of a panel are 32 KiB for AVX-512, half of that for
//   AVX2, and stay in the first-level cache while all tiles of a block pass by;
// - rows of a task: 16 R, so that its block of a, 16 R * 256 elements, stays in the
//   second level, and each panel is used 16 times once it is in the first.
// The depth is cut the same way whatever the tasks are, hence so is the order of additions.
inline constexpr std::int64_t kDepthBlock = 256;

/// How one product is cut into tasks, and which operands are packed.
struct ProductBlocking {
  std::int64_t m, n, k, batches;
  std::int64_t tile_rows, panel;  ///< rows of a tile, columns of a panel
  std::int64_t task_rows = 0, task_columns = 0;
  std::int64_t b_batches = 1;             ///< different matrices b
  bool packs_a = false, packs_b = false;  ///< by each task
  bool shares_b = false;                  ///< packed once before, for all tasks
  bool fetches_a = false;                 ///< a of the next tile, while one is computed
  bool stores_vectors = false;            ///< neighbours along n are neighbours in c

  /// The blocks of the epilogue, if there is one, are the tasks.
  ProductBlocking(const ProductPlan& plan, std::int64_t tile_rows, std::int64_t lanes,
                  std::int64_t element_size, const ProductEpilogue* epilogue = nullptr);

  /// Rows of the next tile where so many are left: as equal as can be, since a tile of one or two rows has
  /// too few sums to hide the latency of each.
  std::int64_t rows_of_tile(std::int64_t left) const {
    const std::int64_t tiles = (left + tile_rows - 1) / tile_rows;
    return (left + tiles - 1) / tiles;
  }
  std::int64_t row_tasks() const { return (m + task_rows - 1) / task_rows; }
  std::int64_t column_tasks() const { return (n + task_columns - 1) / task_columns; }
  std::int64_t panels() const { return (n + panel - 1) / panel; }
  /// Elements of one task's packed block of a; 0 if it is not packed.
  std::int64_t a_packed_size() const;
  std::int64_t b_batch_size() const { return panels() * panel * k; }
  std::int64_t b_packed_size() const { return b_batches * b_batch_size(); }

 private:
  void choose_tasks();
  void choose_packing(const ProductPlan& plan, std::int64_t element_size);
};

}  // namespace loipe::cpu
