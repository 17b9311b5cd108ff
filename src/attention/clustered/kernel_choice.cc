// SPDX-License-Identifier: Apache-2.0
#include "attention/clustered/plan.h"
#include "base/simd_level.h"

namespace loipe::attention::clustered {

const ClusterKernels& cluster_kernels_of_this_cpu() {
  [[maybe_unused]] const SimdLevel level = simd_level();
#ifdef LOIPE_X86_KERNELS
  if (level == SimdLevel::avx512) return avx512_cluster_kernels();
  if (level == SimdLevel::avx2) return avx2_cluster_kernels();
#endif
  return baseline_cluster_kernels();
}

}  // namespace loipe::attention::clustered
