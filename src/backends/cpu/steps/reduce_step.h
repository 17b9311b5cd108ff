// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backends/cpu/kernels/kernel_table.h"
#include "backends/cpu/step.h"
#include "backends/cpu/strided_view.h"

namespace loipe::cpu {

/// out[kept] = sum, max or min over `reduced` of in[kept, reduced]; in.shape is the
/// shape of out followed by the reduced extents. Floating point.
std::unique_ptr<Step> make_reduce_step(const StridedView& in, const StridedView& out, Reduction reduction,
                                       const KernelTable& kernels);

}  // namespace loipe::cpu
