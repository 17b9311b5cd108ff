// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

#include "attention/clustered/query_chunk.h"

// Which queries meet which strips of keys. Each function adds queries to `lanes` and calls take() whenever
// the lanes are full or a strip is at its end; take() uses them up.

namespace loipe::attention::clustered {

/// Packs the direct keys of a block strip by strip: take(first row, rows) with rows counted among them.
template <class E, class Take>
void for_each_direct_strip(const Plan<E>& plan, const KeyClusters<Accumulator<E>>& keys, std::int64_t block,
                           const RowStrip<Accumulator<E>>& strip, Take&& take) {
  const Span direct = plan.direct(block);
  const std::int64_t first = keys.allowed_before[direct.begin];
  const std::int64_t all = keys.allowed_before[direct.end] - first;
  for (std::int64_t begin = 0; begin < all; begin += kStripRows) {
    const std::int64_t count = std::min(kStripRows, all - begin);
    pack_strip(plan, keys.k, keys.v, count, strip,
               [&](std::int64_t n) { return keys.place[first + begin + n]; });
    take(begin, count);
  }
}

/// The queries of a block, query[slot], against rows `rows` of its direct keys.
template <class E, class Take>
void for_each_direct_tile(const Plan<E>& plan, const KeyClusters<Accumulator<E>>& keys,
                          const BlockOfReader& b, const std::int32_t* query, const Span& rows,
                          LaneTile<Accumulator<E>>& lanes, Take&& take) {
  const Span direct = plan.direct(b.block);
  const std::int64_t first = keys.allowed_before[direct.begin] + rows.begin;
  for (std::int64_t slot = b.slot; slot < b.slot + plan.slots; ++slot) {
    const std::int64_t i = query[slot];
    if (i < 0) continue;
    std::int64_t seen = rows.count();
    if (plan.problem.mask.is_causal)
      seen = std::min(keys.allowed_before[std::min(i + 1, direct.end)] - first, seen);
    if (seen > 0) add_lane(lanes, slot, whole_strip(seen));
    if (lanes.count == plan.lanes) take();
  }
  if (lanes.count > 0) take();
}

/// Packs the members of the clusters of a group strip by strip: take(cluster, their places).
template <class E, class Take>
void for_each_member_strip(const Plan<E>& plan, const KeyClusters<Accumulator<E>>& keys, std::int64_t group,
                           const RowStrip<Accumulator<E>>& strip, Take&& take) {
  for (std::int64_t c = group; c < plan.clusters; c += plan.groups)
    for (std::int64_t begin = keys.begin[c]; begin < keys.begin[c + 1]; begin += kStripRows) {
      const Span members{begin, std::min<std::int64_t>(begin + kStripRows, keys.begin[c + 1])};
      pack_strip(plan, keys.k, keys.v, members.count(), strip,
                 [&](std::int64_t n) { return members.begin + n; });
      take(c, members);
    }
}

/// What a block sees of a strip of members: those before its direct keys and, unless causal, those behind.
template <class E>
RowLimits limits_of(const Plan<E>& plan, const KeyClusters<Accumulator<E>>& keys, std::int64_t block,
                    std::int64_t cluster, const Span& members) {
  const std::int64_t at = plan.set_of(block) * plan.rows + cluster;
  const std::int64_t passed = members.begin - keys.begin[cluster];
  RowLimits limits = whole_strip(std::clamp<std::int64_t>(keys.before[at] - passed, 0, members.count()));
  if (plan.has_direct() && !plan.problem.mask.is_causal)
    limits.from = std::max<std::int64_t>(keys.until[at] - passed, 0);
  return limits;
}

/// The queries of a chunk that have taken a cluster, against a strip of its members.
template <class E, class Take>
void for_each_member_tile(const Plan<E>& plan, const KeyClusters<Accumulator<E>>& keys,
                          const ChunkRange& range, const std::uint64_t* taken, std::int64_t cluster,
                          const Span& members, LaneTile<Accumulator<E>>& lanes, Take&& take) {
  const std::int64_t tiles_of_block = plan.slots / plan.lanes * plan.problem.shape.readers();
  for (std::int64_t block = 0; block < range.count; ++block) {
    const RowLimits limits = limits_of(plan, keys, range.first + block, cluster, members);
    if (limits.until == 0 && limits.from >= members.count()) continue;
    for (std::int64_t tile = block * tiles_of_block; tile < (block + 1) * tiles_of_block; ++tile)
      for (std::uint64_t bits = taken[tile * plan.rows + cluster]; bits != 0; bits &= bits - 1) {
        add_lane(lanes, tile * plan.lanes + std::countr_zero(bits), limits);
        if (lanes.count == plan.lanes) take();
      }
  }
  if (lanes.count > 0) take();
}

}  // namespace loipe::attention::clustered
