// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/product_blocking.h"

#include <algorithm>
#include <cstdlib>

namespace loipe::cpu {

namespace {

constexpr std::int64_t kTilesPerTask = 16;
/// Tasks that a large product is split into at least, where possible.
constexpr std::int64_t kFewestTasks = 8;
/// Multiply-adds that make a product large.
constexpr std::int64_t kLarge = 1 << 17;
/// Lines that far apart compete for few sets of a cache, and for the TLB.
constexpr std::int64_t kFarApart = 2048;
/// Uses of a packed block that pay for packing it. Of a panel of b that is not packed each row of vectors is
/// fetched from the second cache again, which product tiles hardly notice as long as the rows are few.
constexpr std::int64_t kEnoughUsesOfA = 4, kEnoughUsesOfB = 8, kFewRowsOfB = 64;
/// Of a first cache; and panels of b that hide how long a larger a takes to arrive.
constexpr std::int64_t kFirstCache = 32 << 10, kEnoughPanels = 4;
/// Bytes of b that are packed at once, at most.
constexpr std::int64_t kMostShared = 32 << 20;

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

ProductBlocking::ProductBlocking(const ProductPlan& plan, std::int64_t rows_of_tile, std::int64_t lanes,
                                 std::int64_t element_size, const ProductEpilogue* epilogue)
    : m(plan.m),
      n(plan.n),
      k(plan.k),
      batches(plan.batch.count()),
      tile_rows(rows_of_tile),
      panel(2 * lanes) {
  const bool is_one_b =
      std::ranges::all_of(plan.batch.strides[1], [](std::int64_t stride) { return stride == 0; });
  b_batches = is_one_b ? 1 : batches;
  if (epilogue == nullptr) {
    choose_tasks();
  } else {
    task_rows = epilogue->rows;
    task_columns = epilogue->columns;
  }
  choose_packing(plan, element_size);
}

/// Halves the longer side of a task until there are enough of them.
void ProductBlocking::choose_tasks() {
  task_rows = std::min(tile_rows * kTilesPerTask, rounded_up(m, tile_rows));
  task_columns = rounded_up(n, panel);
  if (batches * m * n * k < kLarge) return;
  const std::int64_t least_rows = 2 * tile_rows, least_columns = 2 * panel;
  while (batches * row_tasks() * column_tasks() < kFewestTasks) {
    if (task_columns > least_columns && (task_columns >= 2 * task_rows || task_rows <= least_rows))
      task_columns = rounded_up(task_columns / 2, panel);
    else if (task_rows > least_rows) task_rows = rounded_up(task_rows / 2, tile_rows);
    else break;
  }
}

void ProductBlocking::choose_packing(const ProductPlan& plan, std::int64_t element_size) {
  const auto is_far = [=](const AxisMap& map) { return std::abs(map.stride) * element_size >= kFarApart; };
  const bool is_a_uneven = !plan.a_m.is_even() || !plan.a_k.is_even();
  packs_a = is_a_uneven || ((is_far(plan.a_m) || is_far(plan.a_k)) && task_columns >= kEnoughUsesOfA * panel);
  std::int64_t a_size = m * k * element_size;
  for (std::size_t axis = 0; axis < plan.batch.extents.size(); ++axis)
    if (plan.batch.strides[0][axis] != 0) a_size *= plan.batch.extents[axis];
  fetches_a = !packs_a && plan.a_k.is_even() && plan.a_k.stride == 1 && a_size > kFirstCache &&
              panels() <= kEnoughPanels;
  const std::int64_t lanes = panel / 2;
  const bool is_b_unsuitable = !plan.b_n.has_vectors(lanes) || !plan.b_k.is_even();
  const bool has_far_rows = 2 * std::abs(plan.b_k.stride) * element_size >= kFarApart && k > kFewRowsOfB;
  packs_b = is_b_unsuitable || (has_far_rows && m >= kEnoughUsesOfB * tile_rows);
  const bool is_used_by_many = row_tasks() * batches > b_batches;
  shares_b = packs_b && is_used_by_many && b_packed_size() * element_size <= kMostShared;
  stores_vectors = plan.c_m.is_even() && plan.c_n.has_vectors(lanes);
}

std::int64_t ProductBlocking::a_packed_size() const {
  return packs_a ? rounded_up(std::min(task_rows, m), tile_rows) * kDepthBlock : 0;
}

}  // namespace loipe::cpu
