// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/clustered/plan.h"

namespace loipe::attention::clustered {

/// What keys are compared by: of rows [k - mean k, v - mean v], |row|^2 = k^T S k + value_weight |v|^2 with
/// the second moment of the scaled queries S = scale^2 mean(q q^T), so that the squared distance of two keys
/// is the mean square of the difference of their logits, and a little of that of their values.
template <class T>
struct KeyMetric {
  T* moment;  ///< S [head_size][head_size]
  T* factor;  ///< of S = L L^T, L^T in row groups
  T value_weight;
};

/// Columns of such rows, padded.
template <class E>
std::int64_t features_of(const Plan<E>& plan) {
  return plan.centred.head_size + plan.centred.value_size;
}

template <class E>
KeyMetric<Accumulator<E>> take_metric(const Plan<E>& plan, Arena& arena) {
  using T = Accumulator<E>;
  const std::int64_t d = plan.centred.head_size;
  return {arena.take<T>(d * d), arena.take<T>(d * d), T{0}};
}

/// Computes the moment and its factor from at most kSampledQueries queries of the readers; value_weight
/// becomes
/// 1. Workspace: [head_size + 1][head_size] padded doubles, and as many numbers.
template <class E>
void compute_metric(const Plan<E>& plan, std::int64_t key_head, KeyMetric<Accumulator<E>>& metric,
                    double* workspace, Accumulator<E>* scratch);

/// Rows of the keys at `count` positions.
template <class E>
void load_key_rows(const Plan<E>& plan, std::int64_t key_head, const std::int32_t* keys, std::int64_t count,
                   Accumulator<E>* out) {
  using T = Accumulator<E>;
  const std::int64_t d = plan.centred.head_size, dv = plan.centred.value_size;
  for (std::int64_t n = 0; n < count; ++n, out += d + dv) {
    load_rows(plan.problem.k, RowRange<T>{key_head, keys[n], 1, 1, plan.centred.k_mean_of(key_head)},
              plan.problem.shape.head_size, out, d, 1);
    load_rows(plan.problem.v, RowRange<T>{key_head, keys[n], 1, 1, plan.centred.v_mean_of(key_head)},
              plan.problem.shape.value_size, out + d, dv, 1);
  }
}

}  // namespace loipe::attention::clustered
