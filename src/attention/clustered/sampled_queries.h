// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/clustered/query_chunk.h"

// dK and dV are sums over queries, of terms that clusters approximate: A_i in place of X_i. What is off is
// much the same for many queries, as a mean key and value stand for keys that differ. With a sample S that
// has query i with probability p_i,
//
//   sum_i A_i + sum_{i in S} (X_i - A_i) / p_i
//
// has the exact sum as its expectation, and a variance of terms X_i - A_i alone. Terms are linear in the
// query's cotangents: so a sampled query counts as one that sees all keys one by one, of cotangents times 1 /
// p_i, and as an ordinary one, times 1 - 1 / p_i.

namespace loipe::attention::clustered {

/// Draws from the queries of a packed block, half of the probability in proportion to what they may
/// contribute, and packs those that are drawn into the slots behind.
template <class E>
void sample_queries(const Plan<E>& plan, const BlockOfReader& b, const QueryChunk<Accumulator<E>>& chunk);

}  // namespace loipe::attention::clustered
