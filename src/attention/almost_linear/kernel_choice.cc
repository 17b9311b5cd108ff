// SPDX-License-Identifier: Apache-2.0
#include "attention/almost_linear/geometry.h"
#include "base/simd_level.h"

namespace loipe::attention::almost_linear {

const Kernels& kernels_of_this_cpu() {
  [[maybe_unused]] const SimdLevel level = simd_level();
#ifdef LOIPE_X86_KERNELS
  if (level == SimdLevel::avx512) return avx512_kernels();
  if (level == SimdLevel::avx2) return avx2_kernels();
#endif
  return baseline_kernels();
}

}  // namespace loipe::attention::almost_linear
