// SPDX-License-Identifier: Apache-2.0
#include "driver/bench_attention.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "driver/attention_gradients.h"

namespace loipe {

namespace {

constexpr std::int64_t kSamples = 4;
constexpr double kSeconds = 4;

Tensor random_tensor(const TensorType& type, Rng& rng) {
  Tensor tensor(type);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, rng.normal());
  return tensor;
}

/// One head of a run, read as numbers. Everything is [n, d] within the head.
class Head {
 public:
  Head(const AttentionRequest& request, const AttentionInputs& inputs, const AttentionGradients& results,
       std::int64_t head)
      : request_(request), inputs_(inputs), results_(results), head_(head) {}

  /// Largest deviation of O and dQ of query i, and of dK and dV of key j = i.
  void compare(std::int64_t i) {
    const std::int64_t d = request_.shape.head_size, n = request_.shape.queries;
    std::vector<double> o(size(d)), dq(size(d)), dk(size(d)), dv(size(d));
    const std::int64_t end = request_.is_causal ? i + 1 : n;
    double sum = 0;
    for (std::int64_t j = 0; j < end; ++j) sum += std::exp(logit(i, j) - lse(i));
    for (std::int64_t j = 0; j < end; ++j) add(o, std::exp(logit(i, j) - lse(i)) / sum, inputs_.v, j);
    for (std::int64_t j = 0; j < end; ++j) add(dq, request_.scale * dx(i, j), inputs_.k, j);
    for (std::int64_t q = request_.is_causal ? i : 0; q < n; ++q) {
      add(dk, request_.scale * dx(q, i), inputs_.q, q);
      add(dv, std::exp(logit(q, i) - lse(q)), inputs_.g, q);
    }
    take(o, results_.o, i);
    take(dq, results_.dq, i);
    take(dk, results_.dk, i);
    take(dv, results_.dv, i);
  }
  double deviation() const { return deviation_; }

 private:
  static std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }
  std::int64_t at(std::int64_t row) const {
    return (head_ * request_.shape.queries + row) * request_.shape.head_size;
  }
  double dot(const Tensor& a, std::int64_t i, const Tensor& b, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t c = 0; c < request_.shape.head_size; ++c) sum += a.at(at(i) + c) * b.at(at(j) + c);
    return sum;
  }
  double lse(std::int64_t i) const { return results_.lse.at(head_ * request_.shape.queries + i); }
  double logit(std::int64_t i, std::int64_t j) const {
    return request_.scale * dot(inputs_.q, i, inputs_.k, j);
  }
  double dx(std::int64_t i, std::int64_t j) const {
    return std::exp(logit(i, j) - lse(i)) *
           (dot(inputs_.g, i, inputs_.v, j) - dot(inputs_.g, i, results_.o, i));
  }
  void add(std::vector<double>& to, double factor, const Tensor& from, std::int64_t row) const {
    for (std::size_t c = 0; c < to.size(); ++c)
      to[c] += factor * from.at(at(row) + static_cast<std::int64_t>(c));
  }
  void take(const std::vector<double>& expected, const Tensor& got, std::int64_t row) {
    double largest = 0, difference = 0;
    for (std::int64_t c = 0; c < got.element_count();
         c += std::max<std::int64_t>(got.element_count() / 4096, 1))
      largest = std::max(largest, std::abs(got.at(c)));
    for (std::size_t c = 0; c < expected.size(); ++c)
      difference =
          std::max(difference, std::abs(expected[c] - got.at(at(row) + static_cast<std::int64_t>(c))));
    deviation_ =
        std::max(deviation_, std::isnan(difference) ? HUGE_VAL : difference / std::max(largest, 1e-300));
  }

  const AttentionRequest& request_;
  const AttentionInputs& inputs_;
  const AttentionGradients& results_;
  std::int64_t head_;
  double deviation_ = 0;
};

double sampled_deviation(const AttentionRequest& request, const AttentionInputs& inputs,
                         const AttentionGradients& results) {
  double worst = 0;
  for (std::int64_t h = 0; h < request.shape.heads; ++h) {
    Head head(request, inputs, results, h);
    for (std::int64_t s = 0; s < kSamples; ++s)
      head.compare((request.shape.queries - 1) * s / (kSamples - 1));
    worst = std::max(worst, head.deviation());
  }
  return worst;
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

AttentionBenchRow bench_row(const AttentionBenchOptions& options, const AttentionSize& size,
                            const MachineSpeed& speed) {
  AttentionRequest request;
  request.shape = {size.heads, size.heads, size.n, size.n, size.head_size, size.head_size};
  request.scale = 1 / std::sqrt(static_cast<double>(size.head_size));
  request.is_causal = options.is_causal;
  request.dtype = options.dtype;
  request.threads = thread_count(options.threads);
  Rng rng(1);
  const TensorType type{options.dtype, {size.heads, size.n, size.head_size}};
  const AttentionInputs inputs{random_tensor(type, rng), random_tensor(type, rng), random_tensor(type, rng),
                               random_tensor(type, rng)};
  AttentionBenchRow row;
  row.size = size;
  row.peak_bytes = attention_peak_bytes(request);
  const double tolerance = options.dtype == DType::f32 ? 1e-4 : 1e-10;
  row.max_rel_error = sampled_deviation(request, inputs, attention_gradients(request, inputs));
  if (!(row.max_rel_error <= tolerance))
    throw Error(ErrorCode::check_failed, "bench attention: results of head size " +
                                             std::to_string(size.head_size) + " deviate by " +
                                             std::to_string(row.max_rel_error) + " of the largest entry");
  std::vector<double> forward, backward;
  for (double spent = 0;
       options.repetitions ? row.repetitions < *options.repetitions : row.repetitions < 3 || spent < kSeconds;
       ++row.repetitions) {
    const AttentionGradients results = attention_gradients(request, inputs);
    forward.push_back(results.forward_seconds), backward.push_back(results.backward_seconds);
    spent += forward.back() + backward.back();
  }
  const double n = static_cast<double>(size.n), pairs = n * n * (options.is_causal ? 0.5 : 1.0);
  const double unit = pairs * static_cast<double>(size.heads * size.head_size) / 1e9;
  row.forward_ms = 1e3 * median(forward), row.backward_ms = 1e3 * median(backward);
  row.forward_gflops = 4e3 * unit / row.forward_ms, row.backward_gflops = 10e3 * unit / row.backward_ms;
  row.fraction_of_peak = 14e3 * unit / (row.forward_ms + row.backward_ms) / speed.fma_gflops;
  return row;
}

}  // namespace

AttentionBenchResult bench_attention(const AttentionBenchOptions& options, const StageNote& note) {
  AttentionBenchResult result;
  result.is_causal = options.is_causal;
  result.dtype = options.dtype;
  result.threads = thread_count(options.threads);
  result.machine = this_machine();
  result.speed = measure_speed(options.dtype, result.threads);
  for (const AttentionSize& size : options.sizes) {
    if (note)
      note(std::to_string(size.n) + " tokens, " + std::to_string(size.heads) + " heads of " +
           std::to_string(size.head_size));
    result.rows.push_back(bench_row(options, size, result.speed));
  }
  return result;
}

}  // namespace loipe
