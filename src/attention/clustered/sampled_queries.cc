// SPDX-License-Identifier: Apache-2.0
#include "attention/clustered/sampled_queries.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace loipe::attention::clustered {

namespace {

/// About the largest that a query's row of weights may contribute to dK.
template <class E>
double size_of_query(const Plan<E>& plan, const QueryChunk<Accumulator<E>>& chunk, std::int64_t slot) {
  const std::int64_t d = plan.centred.head_size;
  double square = 0;
  for (std::int64_t c = 0; c < d; ++c) {
    const auto x = static_cast<double>(chunk.q[slot * d + c]);
    square += x * x;
  }
  const double size = std::exp2(static_cast<double>(chunk.log_size[slot])) * std::sqrt(square);
  return std::isfinite(size) ? size : 0;
}

template <class E>
void scale_cotangent(const Plan<E>& plan, const QueryChunk<Accumulator<E>>& chunk, std::int64_t slot,
                     Accumulator<E> factor) {
  const std::int64_t dv = plan.centred.value_size;
  for (std::int64_t c = 0; c < dv; ++c) chunk.g[slot * dv + c] *= factor;
  chunk.mean[slot] *= factor;
  chunk.factor[slot] = factor;
}

/// Copies a query to a slot behind, where it takes all clusters.
template <class E>
void pack_sampled(const Plan<E>& plan, std::int64_t from, std::int64_t to, double probability,
                  const QueryChunk<Accumulator<E>>& chunk) {
  using T = Accumulator<E>;
  const std::int64_t d = plan.centred.head_size, dv = plan.centred.value_size;
  std::copy_n(chunk.q + from * d, d, chunk.q + to * d);
  std::copy_n(chunk.g + from * dv, dv, chunk.g + to * dv);
  chunk.lse[to] = chunk.lse[from], chunk.mean[to] = chunk.mean[from];
  chunk.query[to] = chunk.query[from];
  scale_cotangent(plan, chunk, to, static_cast<T>(1 / probability));
  scale_cotangent(plan, chunk, from, static_cast<T>(1 - 1 / probability));
  const std::uint64_t lane = std::uint64_t{1} << (to % plan.lanes);
  for (std::int64_t c = 0; c < plan.clusters; ++c) chunk.taken[to / plan.lanes * plan.rows + c] |= lane;
}

}  // namespace

/// With a random start, wherever the cumulated probability passes a whole number: query i with probability
/// p_i exactly, at most `sampled` of them.
template <class E>
void sample_queries(const Plan<E>& plan, const BlockOfReader& b, const QueryChunk<Accumulator<E>>& chunk) {
  if (plan.sampled == 0) return;
  const std::int64_t count = b.queries.count();
  double sum = 0;
  for (std::int64_t row = 0; row < count; ++row) sum += size_of_query(plan, chunk, b.slot + row);
  const double wanted = static_cast<double>(plan.sampled * count) / static_cast<double>(plan.block);
  const double even = 1 / static_cast<double>(count);
  Rng rng(plan.seed + 0xd1b54a32d192ed03u * static_cast<std::uint64_t>(b.head * plan.blocks + b.block + 1));
  double next = rng.uniform(), passed = 0;
  std::int64_t drawn = 0;
  for (std::int64_t row = 0; row < count && drawn < plan.sampled; ++row) {
    const double size = sum > 0 ? size_of_query(plan, chunk, b.slot + row) / sum : even;
    const double probability = std::min(wanted * (even + size) / 2, 1.0);
    passed += probability;
    if (passed <= next) continue;
    next += 1;
    pack_sampled(plan, b.slot + row, b.slot + plan.block + drawn++, probability, chunk);
  }
}

#define LOIPE_INSTANTIATE(E) \
  template void sample_queries(const Plan<E>&, const BlockOfReader&, const QueryChunk<Accumulator<E>>&);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention::clustered
