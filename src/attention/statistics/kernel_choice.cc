// SPDX-License-Identifier: Apache-2.0
#include "attention/statistics/block_reader.h"
#include "base/simd_level.h"

namespace loipe::attention::statistics {

template <class E>
const MomentKernels<E>& moment_kernels_of_this_cpu() {
#ifdef LOIPE_X86_KERNELS
  if (simd_level() != SimdLevel::baseline) return avx2_moment_kernels<E>();
#endif
  return baseline_moment_kernels<E>();
}

template const MomentKernels<float>& moment_kernels_of_this_cpu();
template const MomentKernels<double>& moment_kernels_of_this_cpu();

}  // namespace loipe::attention::statistics
