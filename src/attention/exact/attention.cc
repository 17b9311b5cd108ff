// SPDX-License-Identifier: Apache-2.0
#include "attention/exact/attention.h"

#include "attention/reference/reference_attention.h"

namespace loipe::attention {

template <class E>
std::size_t forward_workspace(const Problem<E>&, int) {
  return 0;
}
template <class E>
std::size_t vjp_workspace(const Problem<E>&, int) {
  return 0;
}
template <class E>
std::size_t jvp_workspace(const Problem<E>&, int) {
  return 0;
}
template <class E>
std::size_t vjp_jvp_workspace(const Problem<E>&, int) {
  return 0;
}

template <class E>
void forward(const Problem<E>& problem, const ForwardResults<E>& results, const Parallel&,
             std::span<std::byte>) {
  reference::forward(problem, results);
}
template <class E>
void vjp(const Problem<E>& problem, const Saved<E>&, const Cotangents<E>& cotangents,
         const InputCotangents<E>& results, const Parallel&, std::span<std::byte>) {
  reference::vjp(problem, cotangents, results);
}
template <class E>
void jvp(const Problem<E>& problem, const InputTangents<E>& tangents, const Tangents<E>& results,
         const Parallel&, std::span<std::byte>) {
  reference::jvp(problem, tangents, results);
}
template <class E>
void vjp_jvp(const Problem<E>& problem, const Cotangents<E>& cotangents, const InputTangents<E>& tangents,
             const Cotangents<E>& cotangent_tangents, const InputCotangents<E>& results, const Parallel&,
             std::span<std::byte>) {
  reference::vjp_jvp(problem, cotangents, tangents, cotangent_tangents, results);
}

#define LOIPE_INSTANTIATE(E)                                                                                 \
  template std::size_t forward_workspace(const Problem<E>&, int);                                            \
  template std::size_t vjp_workspace(const Problem<E>&, int);                                                \
  template std::size_t jvp_workspace(const Problem<E>&, int);                                                \
  template std::size_t vjp_jvp_workspace(const Problem<E>&, int);                                            \
  template void forward(const Problem<E>&, const ForwardResults<E>&, const Parallel&, std::span<std::byte>); \
  template void vjp(const Problem<E>&, const Saved<E>&, const Cotangents<E>&, const InputCotangents<E>&,     \
                    const Parallel&, std::span<std::byte>);                                                  \
  template void jvp(const Problem<E>&, const InputTangents<E>&, const Tangents<E>&, const Parallel&,         \
                    std::span<std::byte>);                                                                   \
  template void vjp_jvp(const Problem<E>&, const Cotangents<E>&, const InputTangents<E>&,                    \
                        const Cotangents<E>&, const InputCotangents<E>&, const Parallel&,                    \
                        std::span<std::byte>);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
LOIPE_INSTANTIATE(Bf16)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention
