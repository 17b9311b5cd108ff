// SPDX-License-Identifier: Apache-2.0
#include "attention/clustered/key_metric.h"

#include <cmath>

namespace loipe::attention::clustered {

namespace {

constexpr std::int64_t kSampledQueries = 256;

/// moment[r][c], r >= c: scale^2 times the mean of q_r q_c over sampled queries of all readers.
template <class E>
void second_moment(const Plan<E>& plan, std::int64_t key_head, double* moment, double* row) {
  const Shape& s = plan.problem.shape;
  const std::int64_t d = s.head_size, readers = s.readers(), all = readers * s.queries;
  const std::int64_t count = std::min(all, kSampledQueries);
  std::fill(moment, moment + d * d, 0.0);
  for (std::int64_t n = 0; n < count; ++n) {
    const std::int64_t at = n * all / count, head = key_head * readers + at / s.queries;
    for (std::int64_t c = 0; c < d; ++c)
      row[c] = static_cast<double>(get(plan.problem.q, head, at % s.queries, c));
    for (std::int64_t r = 0; r < d; ++r)
      for (std::int64_t c = 0; c <= r; ++c) moment[r * d + c] += row[r] * row[c];
  }
  const double factor =
      plan.problem.scale * plan.problem.scale / static_cast<double>(std::max<std::int64_t>(count, 1));
  for (std::int64_t i = 0; i < d * d; ++i) moment[i] *= factor;
}

/// a = L L^T in place, a made definite by a small multiple of the identity.
void cholesky(double* a, std::int64_t d) {
  double trace = 0;
  for (std::int64_t r = 0; r < d; ++r) trace += a[r * d + r];
  const double ridge = trace > 0 ? 1e-6 * trace / static_cast<double>(d) : 1.0;
  for (std::int64_t r = 0; r < d; ++r)
    for (std::int64_t c = 0; c <= r; ++c) {
      double sum = a[r * d + c] + (r == c ? ridge : 0.0);
      for (std::int64_t k = 0; k < c; ++k) sum -= a[r * d + k] * a[c * d + k];
      a[r * d + c] = r == c ? std::sqrt(std::max(sum, ridge)) : sum / a[c * d + c];
    }
}

}  // namespace

template <class E>
void compute_metric(const Plan<E>& plan, std::int64_t key_head, KeyMetric<Accumulator<E>>& metric,
                    double* workspace, Accumulator<E>* scratch) {
  using T = Accumulator<E>;
  const std::int64_t d = plan.problem.shape.head_size, width = plan.centred.head_size;
  second_moment(plan, key_head, workspace, workspace + width * width);
  std::fill(metric.moment, metric.moment + width * width, T{0});
  for (std::int64_t r = 0; r < d; ++r)
    for (std::int64_t c = 0; c <= r; ++c)
      metric.moment[r * width + c] = metric.moment[c * width + r] = static_cast<T>(workspace[r * d + c]);
  cholesky(workspace, d);
  std::fill(scratch, scratch + width * width, T{0});
  for (std::int64_t r = 0; r < d; ++r)
    for (std::int64_t c = 0; c <= r; ++c) scratch[c * width + r] = static_cast<T>(workspace[r * d + c]);
  to_row_groups(plan.centred.kernels, scratch, width, width, metric.factor);
  metric.value_weight = 1;
}

#define LOIPE_INSTANTIATE(E)                                                                      \
  template void compute_metric(const Plan<E>&, std::int64_t, KeyMetric<Accumulator<E>>&, double*, \
                               Accumulator<E>*);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention::clustered
