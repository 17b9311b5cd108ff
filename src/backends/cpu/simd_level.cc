// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/simd_level.h"

#include <unistd.h>

#include <algorithm>

#include "base/simd_level.h"

namespace loipe::cpu {

const KernelTable& kernels_of_this_cpu() {
  [[maybe_unused]] const SimdLevel level = simd_level();
#ifdef LOIPE_X86_KERNELS
  if (level == SimdLevel::avx512) return avx512_kernels();
  if (level == SimdLevel::avx2) return avx2_kernels();
#endif
  return baseline_kernels();
}

std::int64_t half_second_cache() {
  constexpr std::int64_t kLeast = 1 << 19, kMost = 1 << 20;
#ifdef _SC_LEVEL2_CACHE_SIZE
  return std::clamp<std::int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE) / 2, kLeast, kMost);
#else
  return kLeast;
#endif
}

}  // namespace loipe::cpu
