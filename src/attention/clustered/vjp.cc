// SPDX-License-Identifier: Apache-2.0
#include "attention/clustered/vjp_sweep.h"

namespace loipe::attention::clustered {

template <class E>
std::size_t vjp_workspace(const Problem<E>& problem, const Budget& budget, int threads) {
  Arena arena;
  VjpSweep<E>(problem, budget, threads, arena);
  return arena.used();
}

template <class E>
void vjp(const Problem<E>& problem, const Budget& budget, const Saved<E>& saved,
         const Cotangents<E>& cotangents, const InputCotangents<E>& results, const Parallel& parallel,
         std::span<std::byte> workspace) {
  Arena arena(workspace);
  VjpSweep<E>(problem, budget, parallel.threads, arena).run(saved, cotangents, results, parallel);
}

#define LOIPE_INSTANTIATE(E)                                                                 \
  template std::size_t vjp_workspace(const Problem<E>&, const Budget&, int);                 \
  template void vjp(const Problem<E>&, const Budget&, const Saved<E>&, const Cotangents<E>&, \
                    const InputCotangents<E>&, const Parallel&, std::span<std::byte>);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention::clustered
