// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "attention/clustered/key_metric.h"

namespace loipe::attention::clustered {

/// What compute_mass works in: sampled queries, in tiles of lanes, and one piece of keys.
template <class T>
struct MassMemory {
  T* q;                    // [tiles][head_size][lanes]
  T *maximum, *sum, *lse;  // [tiles][lanes]
  std::int32_t* seen;      // [tiles][lanes]: allowed keys that the query may look at
  T *rows, *k;             // [kTileRows][features], row groups [kTileRows][head_size]
  T *scores, *additive;    // [kTileRows][lanes]
  T *until, *from;         // [lanes]
  T *ones, *sums;          // [lanes][kGroup], [kTileRows][kGroup]
};

template <class E>
MassMemory<Accumulator<E>> take_mass_memory(const Plan<E>& plan, Arena& arena);

/// mass[n] of the allowed key keys[n]: the sum of its softmax weights over at most 96 sampled queries of its
/// readers, over the mean of all keys. allowed_before as KeyClusters has it.
template <class E>
void compute_mass(const Plan<E>& plan, std::int64_t key_head, std::span<const std::int32_t> keys,
                  const std::int32_t* allowed_before, Accumulator<E>* mass,
                  const MassMemory<Accumulator<E>>& memory);

}  // namespace loipe::attention::clustered
