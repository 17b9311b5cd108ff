// SPDX-License-Identifier: Apache-2.0
#include "attention/exact/packing.h"
#include "base/simd_level.h"

namespace loipe::attention {

const AttentionKernels& kernels_of_this_cpu() {
  [[maybe_unused]] const SimdLevel level = simd_level();
#ifdef LOIPE_X86_KERNELS
  if (level == SimdLevel::avx512) return avx512_attention_kernels();
  if (level == SimdLevel::avx2) return avx2_attention_kernels();
#endif
  return baseline_attention_kernels();
}

}  // namespace loipe::attention
