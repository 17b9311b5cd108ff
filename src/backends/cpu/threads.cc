// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/threads.h"

#include <omp.h>

namespace loipe::cpu {

int available_threads() { return omp_get_max_threads(); }

namespace detail {

void parallel_for(int threads, std::int64_t tasks, void (*body)(void*, std::int64_t, int), void* closure) {
  const int team = tasks < threads ? static_cast<int>(tasks) : threads;
#pragma omp parallel num_threads(team)
  {
    const int thread = omp_get_thread_num();
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t task = 0; task < tasks; ++task) body(closure, task, thread);
  }
}

}  // namespace detail

}  // namespace loipe::cpu
