// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backends/cpu/kernels/kernel_table.h"
#include "backends/cpu/step.h"
#include "backends/cpu/steps/nest.h"

namespace loipe::cpu {

/// out[results] = sum over terms of a[...] * b[...], for products that are not
/// matrix times matrix. The results' nest runs over out, a, b; the terms' over a, b.
struct SumPlan {
  DType dtype = DType::f32;
  std::array<BufferId, 3> buffers{};  ///< of out, a, b
  std::array<std::int64_t, 3> offsets{};
  Nest<3> results;
  Nest<2> terms;
};

/// For results whose last axis has stride 1 in out, and 0 or 1 in a and b:
/// neighbouring results are the lanes of a vector.
std::unique_ptr<Step> make_lane_sum_step(SumPlan plan, const KernelTable& kernels);

/// Each result by itself; terms whose last axis has stride 1 in a and b are dot
/// products of vectors.
std::unique_ptr<Step> make_dot_step(SumPlan plan, const KernelTable& kernels);

}  // namespace loipe::cpu
