// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/clustered/plan.h"

namespace loipe::attention::clustered {

/// What keys are compared by: features [L^T (k - mean k), value_weight (v - mean v)] of each key. L is the
/// Cholesky factor of the second moment of the scaled queries, L L^T = scale^2 mean(q q^T), so that the
/// squared distance of two keys is the mean square of the difference of their logits.
template <class T>
struct KeyMetric {
  T* factor;  ///< L, [head_size][head_size]
  T value_weight;
};

/// Features, padded.
template <class E>
std::int64_t features_of(const Plan<E>& plan) {
  return plan.centred.head_size + plan.centred.value_size;
}

/// Computes the factor from at most kSampledQueries queries of the readers. Workspace: doubles, [2
/// head_size][head_size].
template <class E>
void compute_metric(const Plan<E>& plan, std::int64_t key_head, KeyMetric<Accumulator<E>>& metric,
                    double* workspace);

/// out[row][features] of allowed keys `keys`, of which there are `count`; rows beyond are 0 up to `rows`.
template <class E>
void load_features(const Plan<E>& plan, std::int64_t key_head, const KeyMetric<Accumulator<E>>& metric,
                   const std::int32_t* keys, std::int64_t count, Accumulator<E>* out, std::int64_t rows);

}  // namespace loipe::attention::clustered
