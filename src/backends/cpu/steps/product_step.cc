// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/product_step.h"

#include <algorithm>

#include "backends/cpu/plan.h"
#include "backends/cpu/steps/product_blocking.h"
#include "backends/cpu/threads.h"
#include "tensor/visit.h"

namespace loipe::cpu {

namespace {

template <class T>
class ProductStep final : public Step {
 public:
  ProductStep(ProductPlan plan, const KernelTable& kernels, std::unique_ptr<const ProductEpilogue> epilogue)
      : plan_(std::move(plan)),
        kernels_(kernels.floats<T>()),
        epilogue_(std::move(epilogue)),
        blocking_(plan_, kernels_.tile_rows, kernels_.lanes, sizeof(T), epilogue_.get()) {}

  void run(const RunContext& context) const override {
    const int threads = context.threads_for(blocking_.batches * plan_.m * plan_.n * plan_.k / 4);
    if (blocking_.shares_b) pack_all_of_b(context, threads);
    const std::int64_t row_tasks = blocking_.row_tasks(), column_tasks = blocking_.column_tasks();
    parallel_for(threads, blocking_.batches * row_tasks * column_tasks, [&](std::int64_t task, int thread) {
      const std::int64_t column = task % column_tasks, row = task / column_tasks % row_tasks;
      const Block b = block(context, thread, task / column_tasks / row_tasks, row * blocking_.task_rows,
                            column * blocking_.task_columns);
      if (epilogue_ == nullptr) return run_block(b);
      run_with_epilogue(context, thread, task, b);
    });
  }

  std::size_t scratch_bytes() const override {
    return epilogue_ == nullptr ? own_scratch_bytes()
                                : own_scratch_bytes() + block_bytes() + epilogue_->scratch_bytes();
  }
  std::size_t shared_bytes() const override {
    return blocking_.shares_b ? static_cast<std::size_t>(blocking_.b_packed_size()) * sizeof(T) : 0;
  }

 private:
  std::size_t own_scratch_bytes() const {
    return whole_lines(static_cast<std::size_t>(blocking_.a_packed_size() + kDepthBlock * blocking_.panel +
                                                blocking_.tile_rows * blocking_.panel) *
                       sizeof(T));
  }
  /// Of an epilogue's block of results.
  std::size_t block_bytes() const {
    return whole_lines(static_cast<std::size_t>(epilogue_->rows * epilogue_->columns) * sizeof(T));
  }

  /// One task, and where its thread may pack.
  struct Block {
    const T* a;
    const T* b;
    T* c;
    std::int64_t row, rows, column, columns;
    std::int64_t c_row, c_column;  ///< where the block lies in c
    const T* b_shared;             ///< all panels of b: [panel][k][column]; null if not shared
    T* a_packed;                   ///< tiles: [tile][k][row]
    T* b_packed;                   ///< one panel: [k][column]
    T* tile;                       ///< results that cannot be stored as vectors
    const T* a_after;              ///< of the next task; null if there is nothing to fetch
    std::int64_t k = 0, depth = 0;
  };

  Block block(const RunContext& context, int thread, std::int64_t batch, std::int64_t row,
              std::int64_t column) const {
    const NestCursor<3> at(plan_.batch, batch);
    T* const scratch = context.scratch_of<T>(thread);
    T* const b_packed = scratch + blocking_.a_packed_size();
    const T* const shared = reinterpret_cast<const T*>(context.shared);
    return {.a = context.at<T>(plan_.buffers[0], plan_.offsets[0] + at.at(0)),
            .b = context.at<T>(plan_.buffers[1], plan_.offsets[1] + at.at(1)),
            .c = context.at<T>(plan_.buffers[2], plan_.offsets[2] + at.at(2)),
            .row = row,
            .rows = std::min(blocking_.task_rows, plan_.m - row),
            .column = column,
            .columns = std::min(blocking_.task_columns, plan_.n - column),
            .c_row = row,
            .c_column = column,
            .b_shared = blocking_.shares_b ? shared + batch % blocking_.b_batches * blocking_.b_batch_size()
                                           : nullptr,
            .a_packed = scratch,
            .b_packed = b_packed,
            .tile = b_packed + kDepthBlock * blocking_.panel,
            .a_after = blocking_.fetches_a ? a_of_next(context, batch, row, column) : nullptr};
  }

  /// Rows of a that the task after this one reads first, if that has the same thread.
  const T* a_of_next(const RunContext& context, std::int64_t batch, std::int64_t row,
                     std::int64_t column) const {
    if (column + blocking_.task_columns < plan_.n) return nullptr;  // it reads the same rows
    row += blocking_.task_rows;
    if (row >= plan_.m) ++batch, row = 0;
    if (batch == blocking_.batches) return nullptr;
    return context.at<T>(plan_.buffers[0], plan_.offsets[0] + NestCursor<3>(plan_.batch, batch).at(0)) +
           plan_.a_m.at(row);
  }

  /// The vectors of a panel of so many columns.
  std::int64_t vectors_of(std::int64_t columns) const { return columns > kernels_.lanes ? 2 : 1; }

  void pack_all_of_b(const RunContext& context, int threads) const {
    const std::int64_t panels = blocking_.panels();
    parallel_for(threads, blocking_.b_batches * panels, [&](std::int64_t task, int) {
      const NestCursor<3> at(plan_.batch, task / panels);
      const std::int64_t column = task % panels * blocking_.panel;
      const std::int64_t columns = std::min(blocking_.panel, plan_.n - column);
      T* const out = reinterpret_cast<T*>(context.shared) + task / panels * blocking_.b_batch_size() +
                     task % panels * blocking_.panel * plan_.k;
      pack(out, context.at<T>(plan_.buffers[1], plan_.offsets[1] + at.at(1)), plan_.b_k, 0, plan_.k,
           plan_.b_n, column, columns, vectors_of(columns) * kernels_.lanes);
    });
  }

  /// Copies operand[k][outer] to out[k][width].
  void pack(T* out, const T* operand, const AxisMap& along_k, std::int64_t k, std::int64_t depth,
            const AxisMap& outer, std::int64_t first, std::int64_t columns, std::int64_t width) const {
    for (std::int64_t i = 0, rows; i < depth; i += rows) {
      rows = along_k.run_from(k + i, depth - i);
      for (std::int64_t j = 0, some; j < columns; j += some) {
        some = outer.run_from(first + j, columns - j);
        kernels_.pack({out + i * width + j, operand + along_k.at(k + i) + outer.at(first + j), rows, some,
                       along_k.stride, outer.stride, width, j + some == columns ? width - j : some});
      }
    }
  }

  void run_with_epilogue(const RunContext& context, int thread, std::int64_t task, Block block) const {
    std::byte* const results = context.scratch_of<std::byte>(thread) + own_scratch_bytes();
    block.c = reinterpret_cast<T*>(results);
    block.c_row = block.c_column = 0;
    run_block(block);
    epilogue_->run(context, task, results, results + block_bytes());
  }

  /// The first pass, also one over no terms at all, stores; the others add.
  void run_block(Block block) const {
    for (block.k = 0; block.k == 0 || block.k < plan_.k; block.k += kDepthBlock) {
      block.depth = std::min(kDepthBlock, plan_.k - block.k);
      if (blocking_.packs_a) pack_a(block);
      for (std::int64_t j = 0; j < block.columns; j += blocking_.panel)
        run_panel(block, j, std::min(blocking_.panel, block.columns - j));
    }
  }

  void pack_a(const Block& block) const {
    for (std::int64_t i = 0, rows; i < block.rows; i += rows) {
      rows = blocking_.rows_of_tile(block.rows - i);
      pack(block.a_packed + i * block.depth, block.a, plan_.a_k, block.k, block.depth, plan_.a_m,
           block.row + i, rows, rows);
    }
  }

  /// All rows of the block times one panel of b.
  void run_panel(const Block& block, std::int64_t j, std::int64_t columns) const {
    const std::int64_t vectors = vectors_of(columns), width = vectors * kernels_.lanes;
    ProductTile<T> tile{};
    tile.depth = block.depth;
    tile.accumulate = block.k > 0;
    point_to_b(block, j, columns, width, tile);
    for (std::int64_t i = 0, rows; i < block.rows; i += rows) {
      rows = blocking_.rows_of_tile(block.rows - i);
      point_to_a(block, i, rows, tile);
      if (blocking_.fetches_a) tile.next_a = next_a(block, i + rows, j);
      const auto kernel = kernels_.product_tile[rows - 1][vectors - 1][tile.next_a != nullptr];
      if (blocking_.stores_vectors && columns == width) {
        tile.c = block.c + plan_.c_m.at(block.c_row + i) + plan_.c_n.at(block.c_column + j);
        tile.c_row = plan_.c_m.stride;
        tile.c_vector = next_vector(plan_.c_n, block.c_column + j);
        kernel(tile);
      } else {
        ProductTile<T> apart = tile;
        apart.c = block.tile;
        apart.c_row = width;
        apart.c_vector = kernels_.lanes;
        apart.accumulate = false;
        kernel(apart);
        scatter_tile(block, i, rows, j, columns, width);
      }
    }
  }

  void point_to_b(const Block& block, std::int64_t j, std::int64_t columns, std::int64_t width,
                  ProductTile<T>& tile) const {
    tile.b_k = width;
    tile.b_vector = kernels_.lanes;
    if (block.b_shared != nullptr) {
      tile.b = block.b_shared + (block.column + j) * plan_.k + block.k * width;
    } else if (blocking_.packs_b || columns < width) {
      pack(block.b_packed, block.b, plan_.b_k, block.k, block.depth, plan_.b_n, block.column + j, columns,
           width);
      tile.b = block.b_packed;
    } else {
      tile.b = block.b + plan_.b_k.at(block.k) + plan_.b_n.at(block.column + j);
      tile.b_k = plan_.b_k.stride;
      tile.b_vector = next_vector(plan_.b_n, block.column + j);
    }
  }

  /// From the vector at `column` to the next one; there may be none.
  std::int64_t next_vector(const AxisMap& map, std::int64_t column) const {
    return column + kernels_.lanes < plan_.n ? map.at(column + kernels_.lanes) - map.at(column) : 0;
  }

  void point_to_a(const Block& block, std::int64_t i, std::int64_t rows, ProductTile<T>& tile) const {
    if (blocking_.packs_a) {
      tile.a = block.a_packed + i * block.depth;
      tile.a_row = 1;
      tile.a_k = rows;
    } else {
      tile.a = block.a + plan_.a_m.at(block.row + i) + plan_.a_k.at(block.k);
      tile.a_row = plan_.a_m.stride;
      tile.a_k = plan_.a_k.stride;
    }
  }

  /// What the next tile, at row `next` or, behind the last, at the first of another panel, reads of a.
  const T* next_a(const Block& block, std::int64_t next, std::int64_t j) const {
    if (next < block.rows) return block.a + plan_.a_m.at(block.row + next) + plan_.a_k.at(block.k);
    const bool is_last = j + blocking_.panel >= block.columns && block.k + block.depth == plan_.k;
    return is_last ? block.a_after : nullptr;
  }

  /// From the scratch tile to results that are not neighbours, or fewer than a vector.
  void scatter_tile(const Block& block, std::int64_t i, std::int64_t rows, std::int64_t j,
                    std::int64_t columns, std::int64_t width) const {
    for (std::int64_t r = 0; r < rows; ++r) {
      T* c = block.c + plan_.c_m.at(block.c_row + i + r);
      for (std::int64_t s = 0; s < columns; ++s) {
        const T value = block.tile[r * width + s];
        T& to = c[plan_.c_n.at(block.c_column + j + s)];
        to = block.k > 0 ? to + value : value;
      }
    }
  }

  ProductPlan plan_;
  const FloatKernels<T>& kernels_;
  std::unique_ptr<const ProductEpilogue> epilogue_;
  ProductBlocking blocking_;
};

}  // namespace

std::unique_ptr<Step> make_product_step(ProductPlan plan, const KernelTable& kernels,
                                        std::unique_ptr<const ProductEpilogue> epilogue) {
  return visit_floating(plan.dtype, [&]<class T>(T) -> std::unique_ptr<Step> {
    return std::make_unique<ProductStep<T>>(std::move(plan), kernels, std::move(epilogue));
  });
}

}  // namespace loipe::cpu
