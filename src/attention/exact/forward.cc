// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "attention/exact/forward_pass.h"

namespace loipe::attention {

namespace {

/// The tasks of a pass over all queries: ranges of queries of one head. Later ranges, which see more
/// keys when causal, come first, so that the last to finish are short.
template <class E>
struct RangePlan {
  Centred<E> centred;
  ForwardPass<E> pass;
  std::int64_t range, ranges;
  ThreadMemory memory;

  RangePlan(const Problem<E>& problem, const InputTangents<E>* tangents, int threads, Arena& arena)
      : centred(problem, arena), pass(centred, tangents), range(pass.range()) {
    // At least 16 ranges, if there are that many panels of queries.
    const std::int64_t panels = divide_up(problem.shape.queries, centred.kernels.lanes);
    range = std::min(range, std::max<std::int64_t>(divide_up(panels, 16), 1) * centred.kernels.lanes);
    ranges = divide_up(problem.shape.queries, range);
    Arena one_thread;
    pass.take_memory(one_thread);
    memory = ThreadMemory(arena, one_thread.used(), threads);
  }

  template <class Finish>
  void run(const Parallel& parallel, Finish&& finish) {
    const Shape& s = centred.problem.shape;
    centred.compute_means(parallel);
    for_each(parallel, s.heads * ranges, [&](std::int64_t task, int thread) {
      const std::int64_t head = task % s.heads, first = (ranges - 1 - task / s.heads) * range;
      Arena own = memory.of(thread);
      pass.run(head, first, std::min(range, s.queries - first), pass.take_memory(own),
               [&](std::int64_t i, const auto& sums) { finish(head, i, sums); });
    });
  }
};

template <class E>
bool is_empty(const Problem<E>& problem) {
  return problem.shape.heads == 0 || problem.shape.queries == 0;
}

}  // namespace

template <class E>
std::size_t forward_workspace(const Problem<E>& problem, int threads) {
  Arena arena;
  RangePlan<E>(problem, nullptr, threads, arena);
  return arena.used();
}

template <class E>
void forward(const Problem<E>& problem, const ForwardResults<E>& results, const Parallel& parallel,
             std::span<std::byte> workspace) {
  using T = Accumulator<E>;
  if (is_empty(problem)) return;
  Arena arena(workspace);
  RangePlan<E> plan(problem, nullptr, parallel.threads, arena);
  plan.run(parallel, [&](std::int64_t h, std::int64_t i, const QuerySums<T>& sums) {
    const bool has_keys = sums.sum != 0;
    const T* const mean = plan.centred.v_mean_of(problem.shape.key_head(h));
    for (std::int64_t c = 0; results.o && c < problem.shape.value_size; ++c)
      set(results.o, h, i, c, has_keys ? sums.o[c * sums.stride] / sums.sum + mean[c] : T{0});
    if (results.lse) {
      const double centred =
          (static_cast<double>(sums.maximum) + std::log2(static_cast<double>(sums.sum))) * kLn2;
      const double lse = centred + plan.centred.centred_logit(problem.q, h, i);
      set(results.lse, h, i, 0, has_keys ? static_cast<T>(lse) : -std::numeric_limits<T>::infinity());
    }
    if (results.statistics) {
      set(results.statistics, h, i, 0, sums.maximum);
      set(results.statistics, h, i, 1, sums.sum);
    }
  });
}

template <class E>
std::size_t jvp_workspace(const Problem<E>& problem, int threads) {
  Arena arena;
  const InputTangents<E> any{};
  RangePlan<E>(problem, &any, threads, arena);
  return arena.used();
}

/// With s' = log2(e) x' and sums over keys of w = 2^(s - maximum), O' = sum w v' / sum w + log(2) (sum w s' v
/// - sum w s' O) / sum w, where v and O may be centred alike.
template <class E>
void jvp(const Problem<E>& problem, const InputTangents<E>& tangents, const Tangents<E>& results,
         const Parallel& parallel, std::span<std::byte> workspace) {
  using T = Accumulator<E>;
  if (is_empty(problem)) return;
  Arena arena(workspace);
  RangePlan<E> plan(problem, &tangents, parallel.threads, arena);
  plan.run(parallel, [&](std::int64_t h, std::int64_t i, const QuerySums<T>& sums) {
    const T reciprocal = sums.sum != 0 ? 1 / sums.sum : T{0}, mean_score = sums.tangent_sum * reciprocal;
    for (std::int64_t c = 0; results.o && c < problem.shape.value_size; ++c) {
      const std::int64_t at = c * sums.stride;
      const T of_scores = sums.o_of_scores[at] - mean_score * sums.o[at];
      set(results.o, h, i, c, (sums.o_of_values[at] + static_cast<T>(kLn2) * of_scores) * reciprocal);
    }
    if (results.lse) {
      const double centred = plan.centred.centred_logit(tangents.q, h, i);
      const double lse = kLn2 * static_cast<double>(mean_score) + centred;
      set(results.lse, h, i, 0, sums.sum != 0 ? static_cast<T>(lse) : T{0});
    }
  });
}

#define LOIPE_INSTANTIATE(E)                                                                                 \
  template std::size_t forward_workspace(const Problem<E>&, int);                                            \
  template std::size_t jvp_workspace(const Problem<E>&, int);                                                \
  template void forward(const Problem<E>&, const ForwardResults<E>&, const Parallel&, std::span<std::byte>); \
  template void jvp(const Problem<E>&, const InputTangents<E>&, const Tangents<E>&, const Parallel&,         \
                    std::span<std::byte>);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
LOIPE_INSTANTIATE(Bf16)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention
