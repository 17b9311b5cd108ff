// SPDX-License-Identifier: Apache-2.0
#include "base/simd_level.h"

#include <loipe/error.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/text.h"

namespace loipe {

namespace {

constexpr const char* kNames[] = {"baseline", "avx2", "avx512"};

SimdLevel highest_level() {
#ifdef LOIPE_X86_KERNELS
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
      return SimdLevel::avx512;
    return SimdLevel::avx2;
  }
#endif
  return SimdLevel::baseline;
}

}  // namespace

SimdLevel simd_level() {
  const SimdLevel highest = highest_level();
  const char* wanted = std::getenv("LOIPE_SIMD");
  if (wanted == nullptr || *wanted == '\0') return highest;
  std::vector<std::string> names;
  for (int level = 0; level <= static_cast<int>(highest); ++level) {
    if (std::string_view(wanted) == kNames[level]) return static_cast<SimdLevel>(level);
    names.emplace_back(kNames[level]);
  }
  throw UserError("LOIPE_SIMD=" + std::string(wanted) + " is not possible on this CPU" +
                  did_you_mean(wanted, names) + "; expected one of " + join(names, ", "));
}

}  // namespace loipe
