// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/clustered/clustered.h"
#include "attention/clustered/kernels/cluster_kernels.h"
#include "attention/exact/packing.h"

namespace loipe::attention::clustered {

/// The kernels for the running CPU.
const ClusterKernels& cluster_kernels_of_this_cpu();

/// Positions begin..end-1.
struct Span {
  std::int64_t begin, end;
  std::int64_t count() const { return end - begin; }
};

/// How the work on one problem is cut, from its shape and the budget alone, so that bits do not depend on
/// threads.
///
/// Queries go in blocks. The keys of `direct(block)` are seen one by one by all of them: in a causal head
/// those of the block itself, for which no cluster could be averaged in advance, and with a window those
/// around it. Clusters hold, for this block, the allowed keys before and (unless causal) behind that range.
template <class E>
struct Plan {
  using T = Accumulator<E>;

  Plan(const Problem<E>& p, const Budget& budget, Arena& arena)
      : problem(p),
        centred(p, arena),
        kernels(cluster_kernels_of_this_cpu().of<T>()),
        lanes(kernels.lanes),
        clusters(std::clamp<std::int64_t>(budget.clusters, 1, std::max<std::int64_t>(p.shape.keys, 1))),
        rows(round_up(clusters, kGroup)),
        exact_keys(std::max<std::int64_t>(budget.exact_keys, 0)),
        window(std::max<std::int64_t>(budget.window, p.mask.is_causal ? 1 : 0)),
        seed(budget.seed),
        is_by_importance(budget.is_by_importance),
        block(
            round_up(std::max({window > 0 ? kSmallestBlock : kFreeBlock, clusters, window}), kSmallestBlock)),
        blocks(divide_up(p.shape.queries, block)),
        sets(has_direct() ? blocks : 1),
        sampled(p.shape.queries == 0
                    ? 0
                    : divide_up(std::clamp<std::int64_t>(budget.sampled, 0, p.shape.queries) * block,
                                p.shape.queries)),
        slots(block + round_up(sampled, lanes)),
        groups(
            std::clamp<std::int64_t>(16 / std::max<std::int64_t>(p.shape.kv_heads, 1), 4, kLargestGroups)) {}

  static constexpr std::int64_t kLargestGroups = 16;

  const Problem<E>& problem;
  Centred<E> centred;
  const ClusterTileKernels<T>& kernels;
  std::int64_t lanes;
  std::int64_t clusters, rows;  ///< of a head of keys; padded
  std::int64_t exact_keys, window;
  std::uint64_t seed;
  bool is_by_importance;
  std::int64_t block, blocks;  ///< queries of a block, a multiple of the lanes; blocks of a head of queries
  std::int64_t sets;           ///< of means: one for each block, or one for all
  std::int64_t sampled;        ///< queries of a full block that see all keys besides
  std::int64_t slots;          ///< of a block of one reader: its queries, then sampled ones
  std::int64_t groups;         ///< of clusters, each with sums of its own over queries

  bool has_direct() const { return window > 0; }
  Span queries_of(std::int64_t b) const {
    return {b * block, std::min((b + 1) * block, problem.shape.queries)};
  }
  Span direct(std::int64_t b) const {
    const std::int64_t keys = problem.shape.keys;
    if (!has_direct()) return {keys, keys};
    const Span queries = queries_of(b);
    const std::int64_t behind = problem.mask.is_causal ? 0 : window - 1;
    return {std::clamp<std::int64_t>(queries.begin - window + 1, 0, keys),
            std::min(queries.end + behind, keys)};
  }
  /// The longest.
  std::int64_t direct_keys() const {
    return has_direct() ? std::min(block + 2 * window, problem.shape.keys) : 0;
  }
  std::int64_t set_of(std::int64_t b) const { return sets == 1 ? 0 : b; }

  /// Heads of keys that are worked on together, if one needs so many bytes.
  std::int64_t heads_at_once(std::size_t bytes_of_head) const {
    return std::clamp<std::int64_t>(kHeadsBytes / static_cast<std::int64_t>(bytes_of_head), 1,
                                    std::max<std::int64_t>(problem.shape.kv_heads, 1));
  }

 private:
  static constexpr std::int64_t kHeadsBytes = std::int64_t{24} << 20;
  /// Of queries: a multiple of the lanes of every instruction set; and what blocks have if they have no
  /// direct keys.
  static constexpr std::int64_t kSmallestBlock = 96, kFreeBlock = 384;
};

}  // namespace loipe::attention::clustered
