// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/kernels/kernel_table.h"

namespace loipe::cpu {

/// The kernels for the widest vectors of the running CPU. The environment variable
/// LOIPE_SIMD (baseline, avx2 or avx512) chooses lower ones; UserError for another
/// value or one that the CPU lacks.
const KernelTable& kernels_of_this_cpu();

}  // namespace loipe::cpu
