// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/kernels/kernel_table.h"

namespace loipe::cpu {

/// The kernels of simd_level().
const KernelTable& kernels_of_this_cpu();

}  // namespace loipe::cpu
