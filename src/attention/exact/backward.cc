// SPDX-License-Identifier: Apache-2.0
#include "attention/exact/backward_sweep.h"

namespace loipe::attention {

namespace {

template <class E>
std::size_t workspace_of(const BackwardProblem<E>& backward, int threads) {
  Arena arena;
  BackwardSweep<E>(backward, threads, arena);
  return arena.used();
}

template <class E>
void run(const BackwardProblem<E>& backward, const Parallel& parallel, std::span<std::byte> workspace) {
  Arena arena(workspace);
  BackwardSweep<E>(backward, parallel.threads, arena).run(parallel);
}

}  // namespace

template <class E>
std::size_t vjp_workspace(const Problem<E>& problem, int threads) {
  return workspace_of<E>({problem, {}, {}, nullptr, nullptr, {}}, threads);
}

template <class E>
void vjp(const Problem<E>& problem, const Saved<E>& saved, const Cotangents<E>& cotangents,
         const InputCotangents<E>& results, const Parallel& parallel, std::span<std::byte> workspace) {
  run<E>({problem, saved, cotangents, nullptr, nullptr, results}, parallel, workspace);
}

template <class E>
std::size_t vjp_jvp_workspace(const Problem<E>& problem, int threads) {
  const InputTangents<E> any{};
  return workspace_of<E>({problem, {}, {}, &any, nullptr, {}}, threads);
}

template <class E>
void vjp_jvp(const Problem<E>& problem, const Cotangents<E>& cotangents, const InputTangents<E>& tangents,
             const Cotangents<E>& cotangent_tangents, const InputCotangents<E>& results,
             const Parallel& parallel, std::span<std::byte> workspace) {
  run<E>({problem, {}, cotangents, &tangents, &cotangent_tangents, results}, parallel, workspace);
}

#define LOIPE_INSTANTIATE(E)                                                                             \
  template std::size_t vjp_workspace(const Problem<E>&, int);                                            \
  template std::size_t vjp_jvp_workspace(const Problem<E>&, int);                                        \
  template void vjp(const Problem<E>&, const Saved<E>&, const Cotangents<E>&, const InputCotangents<E>&, \
                    const Parallel&, std::span<std::byte>);                                              \
  template void vjp_jvp(const Problem<E>&, const Cotangents<E>&, const InputTangents<E>&,                \
                        const Cotangents<E>&, const InputCotangents<E>&, const Parallel&,                \
                        std::span<std::byte>);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
LOIPE_INSTANTIATE(Bf16)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention
