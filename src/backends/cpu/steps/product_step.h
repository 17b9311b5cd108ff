// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>

#include "backends/cpu/kernels/kernel_table.h"
#include "backends/cpu/step.h"
#include "backends/cpu/steps/nest.h"
#include "backends/cpu/steps/product_epilogue.h"

namespace loipe::cpu {

/// Positions along a group of labels that one loop runs over: an even stride, or a table of runs
/// of even stride, all of one length.
struct AxisMap {
  std::int64_t stride = 0;
  Integers table;        ///< empty when even
  std::int64_t run = 1;  ///< length of the table's runs

  bool is_even() const { return table.empty(); }
  /// How many of the `most` positions from i on are one run.
  std::int64_t run_from(std::int64_t i, std::int64_t most) const {
    return is_even() ? most : std::min(most, run - i % run);
  }
  /// Whether every `lanes` positions from a multiple of `lanes` on are neighbours.
  bool has_vectors(std::int64_t lanes) const { return stride == 1 && (is_even() || run % lanes == 0); }
  std::int64_t at(std::int64_t i) const {
    return is_even() ? i * stride : table[static_cast<std::size_t>(i)];
  }
};

/// c[batch][m][n] = sum over k of a[batch][m][k] * b[batch][k][n].
struct ProductPlan {
  DType dtype = DType::f32;
  std::array<BufferId, 3> buffers{};  ///< of a, b, c
  std::array<std::int64_t, 3> offsets{};
  std::int64_t m = 1, n = 1, k = 1;
  AxisMap a_m, a_k, b_k, b_n, c_m, c_n;
  Nest<3> batch;
};

/// Register tiles over panels that are packed where the strides do not suit, on
/// tasks of rows x columns of the results. With an epilogue its blocks are the tasks, and c is not
/// written.
std::unique_ptr<Step> make_product_step(ProductPlan plan, const KernelTable& kernels,
                                        std::unique_ptr<const ProductEpilogue> epilogue = nullptr);

}  // namespace loipe::cpu
