// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/simd_level.h"

#include <loipe/error.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/text.h"

namespace loipe::cpu {

namespace {

/// All tables that the CPU can run, widest vectors last.
std::vector<const KernelTable*> usable_tables() {
  std::vector<const KernelTable*> tables{&baseline_kernels()};
#ifdef LOIPE_X86_KERNELS
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    tables.push_back(&avx2_kernels());
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
      tables.push_back(&avx512_kernels());
  }
#endif
  return tables;
}

}  // namespace

const KernelTable& kernels_of_this_cpu() {
  const std::vector<const KernelTable*> tables = usable_tables();
  const char* wanted = std::getenv("LOIPE_SIMD");
  if (wanted == nullptr || *wanted == '\0') return *tables.back();
  std::vector<std::string> names;
  for (const KernelTable* table : tables) {
    if (table->name == std::string_view(wanted)) return *table;
    names.emplace_back(table->name);
  }
  throw UserError("LOIPE_SIMD=" + std::string(wanted) + " is not possible on this CPU" +
                  did_you_mean(wanted, names) + "; expected one of " + join(names, ", "));
}

}  // namespace loipe::cpu
