// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backends/cpu/kernels/kernel_table.h"
#include "backends/cpu/step.h"
#include "backends/cpu/strided_view.h"

namespace loipe::cpu {

/// to[i] = from[i] for views of one shape; no two indices of `to` meet.
std::unique_ptr<Step> make_copy_step(const StridedView& from, const StridedView& to,
                                     const KernelTable& kernels);

/// to[i] += from[i] for numbers, one after the other where indices of `to` meet.
std::unique_ptr<Step> make_add_step(const StridedView& from, const StridedView& to);

/// Sets a contiguous view to zero.
std::unique_ptr<Step> make_zero_step(const StridedView& to);

}  // namespace loipe::cpu
