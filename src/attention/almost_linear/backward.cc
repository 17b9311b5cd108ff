// SPDX-License-Identifier: Apache-2.0
#include "attention/almost_linear/backward_sweep.h"

namespace loipe::attention::almost_linear {

template <class E>
std::size_t vjp_workspace(const Problem<E>& problem, const Approximation& approximation, int threads) {
  Arena arena;
  BackwardSweep<E>({problem, approximation, {}, {}, {}}, threads, arena);
  return arena.used();
}

template <class E>
void vjp(const Problem<E>& problem, const Approximation& approximation, const Saved<E>& saved,
         const Cotangents<E>& cotangents, const InputCotangents<E>& results, const Parallel& parallel,
         std::span<std::byte> workspace) {
  Arena arena(workspace);
  BackwardSweep<E>({problem, approximation, saved, cotangents, results}, parallel.threads, arena)
      .run(parallel);
}

#define LOIPE_INSTANTIATE(E)                                                                        \
  template std::size_t vjp_workspace(const Problem<E>&, const Approximation&, int);                 \
  template void vjp(const Problem<E>&, const Approximation&, const Saved<E>&, const Cotangents<E>&, \
                    const InputCotangents<E>&, const Parallel&, std::span<std::byte>);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention::almost_linear
