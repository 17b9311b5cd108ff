// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/product_step.h"

#include <algorithm>

#include "backends/cpu/threads.h"
#include "tensor/visit.h"

namespace loipe::cpu {

namespace {

// Blocking, for vectors of V bytes and tiles of R rows and 2 vectors:
// - depth block K = 256: a panel of b is K * 2V bytes, 32 KiB for AVX-512 and half of that
//   for AVX2, and stays in the first-level cache while all panels of a pass by;
// - rows of a task 16 R: the block of a, 16 R K elements, stays in the second level;
// - columns of a task 16 panels, so that a block of a is used 16 times.
// K is fixed, hence also the order of additions, whatever the tasks are.
constexpr std::int64_t kDepthBlock = 256;
constexpr std::int64_t kTilesPerTask = 16, kPanelsPerTask = 16;
/// Tasks that a large product is split into at least, where possible.
constexpr std::int64_t kFewestTasks = 8;
/// Multiply-adds that make a product large.
constexpr std::int64_t kLarge = 1 << 17;
/// Lines that far apart compete for the same sets of a cache, and for the TLB.
constexpr std::int64_t kFarApart = 2048;

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

template <class T>
class ProductStep final : public Step {
 public:
  ProductStep(ProductPlan plan, const KernelTable& kernels)
      : plan_(std::move(plan)),
        kernels_(kernels.floats<T>()),
        tile_rows_(kernels_.tile_rows),
        panel_(2 * kernels_.lanes),
        batches_(plan_.batch.count()) {
    choose_tasks();
    choose_packing();
  }

  void run(const RunContext& context) const override {
    const std::int64_t row_tasks = (plan_.m + task_rows_ - 1) / task_rows_;
    const std::int64_t column_tasks = (plan_.n + task_columns_ - 1) / task_columns_;
    const int threads = context.threads_for(batches_ * plan_.m * plan_.n * plan_.k / 4);
    parallel_for(threads, batches_ * row_tasks * column_tasks, [&](std::int64_t task, int thread) {
      const std::int64_t column = task % column_tasks, row = task / column_tasks % row_tasks;
      const NestCursor<3> at(plan_.batch, task / column_tasks / row_tasks);
      Block block{context.at<T>(plan_.buffers[0], plan_.offsets[0] + at.at(0)),
                  context.at<T>(plan_.buffers[1], plan_.offsets[1] + at.at(1)),
                  context.at<T>(plan_.buffers[2], plan_.offsets[2] + at.at(2))};
      block.row = row * task_rows_;
      block.rows = std::min(task_rows_, plan_.m - block.row);
      block.column = column * task_columns_;
      block.columns = std::min(task_columns_, plan_.n - block.column);
      block.a_packed = context.scratch_of<T>(thread);
      block.b_packed = block.a_packed + a_packed_size();
      block.tile = block.b_packed + kDepthBlock * panel_;
      run_block(block);
    });
  }

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(a_packed_size() + kDepthBlock * panel_ + tile_rows_ * panel_) * sizeof(T);
  }

 private:
  /// One task, and where its thread may pack.
  struct Block {
    const T* a;
    const T* b;
    T* c;
    std::int64_t row = 0, rows = 0, column = 0, columns = 0;
    std::int64_t k = 0, depth = 0;
    T* a_packed = nullptr;  ///< tiles of tile_rows: [k][row]
    T* b_packed = nullptr;  ///< one panel: [k][column]
    T* tile = nullptr;      ///< results that cannot be stored as vectors
  };

  void choose_tasks() {
    task_rows_ = tile_rows_ * kTilesPerTask;
    task_columns_ = panel_ * kPanelsPerTask;
    if (batches_ * plan_.m * plan_.n * plan_.k < kLarge) return;
    const auto tasks = [&] {
      return batches_ * ((plan_.m + task_rows_ - 1) / task_rows_) *
             ((plan_.n + task_columns_ - 1) / task_columns_);
    };
    while (tasks() < kFewestTasks && (task_rows_ > 2 * tile_rows_ || task_columns_ > 2 * panel_)) {
      const bool rows_next =
          task_columns_ <= 2 * panel_ ||
          (task_rows_ > 2 * tile_rows_ && std::min(task_rows_, plan_.m) >= std::min(task_columns_, plan_.n));
      if (rows_next) task_rows_ /= 2;
      else task_columns_ /= 2;
    }
  }

  /// Packing costs a pass over the operand per task. It is needed where the strides
  /// are uneven, and pays where the block is used often enough and its lines lie far apart.
  void choose_packing() {
    const std::int64_t size = sizeof(T);
    const bool a_far = std::max(std::abs(plan_.a_m.stride), std::abs(plan_.a_k.stride)) * size >= kFarApart;
    packs_a_ = !plan_.a_m.is_even() || !plan_.a_k.is_even() || (a_far && plan_.n >= 4 * panel_);
    const bool b_far = std::abs(plan_.b_k.stride) * size >= kFarApart / 2;
    packs_b_ = !plan_.b_n.is_even() || plan_.b_n.stride != 1 || !plan_.b_k.is_even() ||
               (b_far && plan_.m >= 4 * tile_rows_);
    stores_vectors_ = plan_.c_m.is_even() && plan_.c_n.is_even() && plan_.c_n.stride == 1;
  }

  std::int64_t a_packed_size() const {
    return packs_a_ ? rounded_up(std::min(task_rows_, plan_.m), tile_rows_) * kDepthBlock : 0;
  }

  void run_block(Block& block) const {
    for (block.k = 0; block.k == 0 || block.k < plan_.k; block.k += kDepthBlock) {
      block.depth = std::min(kDepthBlock, plan_.k - block.k);
      if (packs_a_) pack_a(block);
      for (std::int64_t j = 0; j < block.columns; j += panel_)
        run_panel(block, j, std::min<std::int64_t>(panel_, block.columns - j));
    }
  }

  void pack_a(const Block& block) const {
    for (std::int64_t i = 0; i < block.rows; i += tile_rows_) {
      const std::int64_t rows = std::min<std::int64_t>(tile_rows_, block.rows - i);
      pack(block.a_packed + i * block.depth, block.a, plan_.a_k, block.k, block.depth, plan_.a_m,
           block.row + i, rows, tile_rows_);
    }
  }

  /// Copies operand[k][outer] to out[k][width].
  void pack(T* out, const T* operand, const AxisMap& along_k, std::int64_t k, std::int64_t depth,
            const AxisMap& outer, std::int64_t first, std::int64_t columns, std::int64_t width) const {
    if (along_k.is_even() && outer.is_even()) {
      kernels_.pack({out, operand + along_k.at(k) + outer.at(first), depth, columns, along_k.stride,
                     outer.stride, width});
      return;
    }
    for (std::int64_t i = 0; i < depth; ++i, out += width) {
      const T* row = operand + along_k.at(k + i);
      for (std::int64_t j = 0; j < columns; ++j) out[j] = row[outer.at(first + j)];
      std::fill(out + columns, out + width, T{0});
    }
  }

  /// All rows of the block times one panel of b.
  void run_panel(const Block& block, std::int64_t j, std::int64_t columns) const {
    const std::int64_t vectors = columns > kernels_.lanes ? 2 : 1, width = vectors * kernels_.lanes;
    ProductTile<T> tile{};
    tile.depth = block.depth;
    tile.accumulate = block.k > 0;
    if (packs_b_ || columns < width) {
      pack(block.b_packed, block.b, plan_.b_k, block.k, block.depth, plan_.b_n, block.column + j, columns,
           width);
      tile.b = block.b_packed;
      tile.b_k = width;
    } else {
      tile.b = block.b + plan_.b_k.at(block.k) + plan_.b_n.at(block.column + j);
      tile.b_k = plan_.b_k.stride;
    }
    for (std::int64_t i = 0; i < block.rows; i += tile_rows_) {
      const std::int64_t rows = std::min<std::int64_t>(tile_rows_, block.rows - i);
      point_to_a(block, i, tile);
      auto kernel = kernels_.product_tile[rows - 1][vectors - 1];
      if (stores_vectors_ && columns == width) {
        tile.c = block.c + plan_.c_m.at(block.row + i) + plan_.c_n.at(block.column + j);
        tile.c_row = plan_.c_m.stride;
        kernel(tile);
      } else {
        run_through_tile(block, tile, kernel, i, rows, j, columns, width);
      }
    }
  }

  void point_to_a(const Block& block, std::int64_t i, ProductTile<T>& tile) const {
    if (packs_a_) {
      tile.a = block.a_packed + i * block.depth;
      tile.a_row = 1;
      tile.a_k = tile_rows_;
    } else {
      tile.a = block.a + plan_.a_m.at(block.row + i) + plan_.a_k.at(block.k);
      tile.a_row = plan_.a_m.stride;
      tile.a_k = plan_.a_k.stride;
    }
  }

  void run_through_tile(const Block& block, ProductTile<T> tile, void (*kernel)(const ProductTile<T>&),
                        std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t columns,
                        std::int64_t width) const {
    const bool accumulate = tile.accumulate;
    tile.accumulate = false;
    tile.c = block.tile;
    tile.c_row = width;
    kernel(tile);
    for (std::int64_t r = 0; r < rows; ++r) {
      T* c = block.c + plan_.c_m.at(block.row + i + r);
      for (std::int64_t s = 0; s < columns; ++s) {
        T& to = c[plan_.c_n.at(block.column + j + s)];
        const T value = block.tile[r * width + s];
        to = accumulate ? to + value : value;
      }
    }
  }

  ProductPlan plan_;
  const FloatKernels<T>& kernels_;
  std::int64_t tile_rows_, panel_, batches_;
  std::int64_t task_rows_ = 0, task_columns_ = 0;
  bool packs_a_ = false, packs_b_ = false, stores_vectors_ = false;
};

}  // namespace

std::unique_ptr<Step> make_product_step(ProductPlan plan, const KernelTable& kernels) {
  return visit_floating(plan.dtype, [&]<class T>(T) -> std::unique_ptr<Step> {
    return std::make_unique<ProductStep<T>>(std::move(plan), kernels);
  });
}

}  // namespace loipe::cpu
