// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/kernel_table.h"

namespace loipe::cpu {

/// The kernels of simd_level().
const KernelTable& kernels_of_this_cpu();

/// Half of the second-level cache of one core, between 512 KiB, also where its size is unknown, and 1 MiB.
std::int64_t half_second_cache();

}  // namespace loipe::cpu
