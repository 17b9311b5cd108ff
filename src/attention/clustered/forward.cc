// SPDX-License-Identifier: Apache-2.0
#include "attention/clustered/forward_sweep.h"

namespace loipe::attention::clustered {

template <class E>
std::size_t forward_workspace(const Problem<E>& problem, const Budget& budget, int threads) {
  Arena arena;
  ForwardSweep<E>(problem, budget, threads, arena);
  return arena.used();
}

template <class E>
void forward(const Problem<E>& problem, const Budget& budget, const ForwardResults<E>& results,
             const Parallel& parallel, std::span<std::byte> workspace) {
  Arena arena(workspace);
  ForwardSweep<E>(problem, budget, parallel.threads, arena).run(results, parallel);
}

#define LOIPE_INSTANTIATE(E)                                                                         \
  template std::size_t forward_workspace(const Problem<E>&, const Budget&, int);                     \
  template void forward(const Problem<E>&, const Budget&, const ForwardResults<E>&, const Parallel&, \
                        std::span<std::byte>);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention::clustered
