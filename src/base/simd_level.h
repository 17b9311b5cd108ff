// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace loipe {

/// The instruction sets that kernels are compiled for, narrowest vectors first.
enum class SimdLevel : std::uint8_t { baseline, avx2, avx512 };

/// That with the widest vectors of the running CPU. The environment variable LOIPE_SIMD
/// (baseline, avx2 or avx512) chooses a lower one; UserError for another value or one that
/// the CPU lacks.
SimdLevel simd_level();

}  // namespace loipe
