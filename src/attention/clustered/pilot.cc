// SPDX-License-Identifier: Apache-2.0
#include "attention/clustered/pilot_sweep.h"

namespace loipe::attention::clustered {

template <class E>
std::size_t pilot_workspace(const Problem<E>& problem, std::span<const Budget> budgets, const Pilot& pilot,
                            int threads) {
  Arena arena;
  PilotSweep<E>(problem, budgets, pilot, threads, arena);
  return arena.used();
}

template <class E>
void pilot(const Problem<E>& problem, std::span<const Budget> budgets, const Pilot& pilot,
           const Saved<E>& saved, const Cotangents<E>& cotangents, std::span<double> errors,
           const Parallel& parallel, std::span<std::byte> workspace) {
  Arena arena(workspace);
  PilotSweep<E>(problem, budgets, pilot, parallel.threads, arena).run(saved, cotangents, errors, parallel);
}

#define LOIPE_INSTANTIATE(E)                                                                           \
  template std::size_t pilot_workspace(const Problem<E>&, std::span<const Budget>, const Pilot&, int); \
  template void pilot(const Problem<E>&, std::span<const Budget>, const Pilot&, const Saved<E>&,       \
                      const Cotangents<E>&, std::span<double>, const Parallel&, std::span<std::byte>);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention::clustered
