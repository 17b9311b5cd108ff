// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "attention/attention_case.h"
#include "attention/clustered/clustered.h"
#include "attention/threads_and_memory.h"
#include "base/simd_level.h"

// Runs clustered attention on random cases.

namespace loipe::attention::testing {

using clustered::Budget;

/// What a computation writes.
template <class E>
struct Results {
  Array<E> o, q, k, v;
  Array<Accumulator<E>> lse;

  explicit Results(const Case<E>& c) {
    Rng rng(static_cast<std::uint64_t>(c.shape.queries * 31 + c.shape.keys));
    const Shape& s = c.shape;
    o = Array<E>(s.heads, s.queries, s.value_size, rng), q = Array<E>(s.heads, s.queries, s.head_size, rng);
    k = Array<E>(s.kv_heads, s.keys, s.head_size, rng), v = Array<E>(s.kv_heads, s.keys, s.value_size, rng);
    lse = Array<Accumulator<E>>(s.heads, s.queries, 1, rng);
  }
  clustered::Saved<E> saved() const { return {o.rows(), lse.rows()}; }
};

/// Kernels of one instruction set, or of the highest that the CPU has below it.
class ScopedLevel {
 public:
  explicit ScopedLevel(std::uint64_t level) {
    constexpr const char* kNames[] = {"baseline", "avx2", "avx512"};
    setenv("LOIPE_SIMD", kNames[std::min<std::uint64_t>(level, static_cast<std::uint64_t>(simd_level()))], 1);
  }
  ~ScopedLevel() { unsetenv("LOIPE_SIMD"); }
};

template <class E>
void run_forward(const Case<E>& c, const Budget& budget, Results<E>& r, const Parallel& parallel = {}) {
  Workspace memory(clustered::forward_workspace(c.problem(), budget, parallel.threads));
  clustered::forward<E>(c.problem(), budget, {r.o.rows(), r.lse.rows()}, parallel, memory.bytes());
  EXPECT_TRUE(memory.is_whole());
}

template <class E>
void run_vjp(const Case<E>& c, const Budget& budget, const clustered::Saved<E>& saved, Results<E>& r,
             const Parallel& parallel = {}) {
  Workspace memory(clustered::vjp_workspace(c.problem(), budget, parallel.threads));
  clustered::vjp<E>(c.problem(), budget, saved, c.cotangents(), {r.q.rows(), r.k.rows(), r.v.rows()},
                    parallel, memory.bytes());
  EXPECT_TRUE(memory.is_whole());
}

/// A case without what clustered attention does not have: a bias and a window of the mask.
template <class E>
Case<E> clustered_case(Rng& rng, std::int64_t largest) {
  Case<E> c = random_case<E>(rng, largest);
  c.window = 0;
  c.bias.clear();
  return c;
}

}  // namespace loipe::attention::testing
