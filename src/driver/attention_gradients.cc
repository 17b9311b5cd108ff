// SPDX-License-Identifier: Apache-2.0
#include "driver/attention_gradients.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "attention/almost_linear/almost_linear.h"
#include "attention/approximate/approximate.h"
#include "attention/exact/attention.h"
#include "backends/cpu/threads.h"
#include "driver/public_report.h"
#include "tensor/visit.h"

namespace loipe {

namespace {

using attention::contiguous;

Shape o_shape(const attention::Shape& s) { return {s.heads, s.queries, s.value_size}; }
Shape q_shape(const attention::Shape& s) { return {s.heads, s.queries, s.head_size}; }
Shape k_shape(const attention::Shape& s) { return {s.kv_heads, s.keys, s.head_size}; }
Shape v_shape(const attention::Shape& s) { return {s.kv_heads, s.keys, s.value_size}; }
Shape statistics_shape(const attention::Shape& s) { return {s.heads, s.queries, attention::kStatistics}; }

template <class T>
attention::Rows<T> rows_of(Tensor& tensor) {
  const Shape& shape = tensor.shape();
  return contiguous(tensor.elements<T>().data(), shape[1], shape.size() > 2 ? shape[2] : 1);
}
template <class T>
attention::Rows<const T> rows_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  return contiguous(tensor.elements<T>().data(), shape[1], shape.size() > 2 ? shape[2] : 1);
}

template <class T>
attention::Problem<T> problem_of(const AttentionRequest& request) {
  attention::Problem<T> problem{request.shape, request.scale, {}, {}, {}, {}};
  problem.mask.is_causal = request.is_causal;
  problem.mask.window = request.window;
  problem.mask.key_mask = request.key_mask.empty() ? nullptr : request.key_mask.data();
  return problem;
}

namespace approximate = attention::approximate;
namespace almost_linear = attention::almost_linear;

std::vector<approximate::Settings> settings_of(const AttentionRequest& request) {
  return std::vector(static_cast<std::size_t>(request.shape.kv_heads), request.settings);
}

bool is_exact(const AttentionRequest& request) {
  return request.settings.method == approximate::Method::exact;
}

/// The given polynomial for all heads.
struct GivenPolynomial {
  std::vector<double> coefficients;  ///< [kv_heads][degree + 1]
  almost_linear::Approximation approximation;

  explicit GivenPolynomial(const AttentionRequest& request) {
    for (std::int64_t head = 0; head < request.shape.kv_heads; ++head)
      coefficients.insert(coefficients.end(), request.polynomial.begin(), request.polynomial.end());
    approximation.degree = static_cast<int>(request.polynomial.size()) - 1;
    approximation.coefficients = coefficients.data();
    approximation.is_centred = false;
    approximation.gradient = request.settings.has_paper_gradient ? almost_linear::Gradient::paper
                                                                 : almost_linear::Gradient::consistent;
  }
};

template <class T>
std::size_t workspace_bytes(const AttentionRequest& request) {
  const attention::Problem<T> problem = problem_of<T>(request);
  const int threads = request.threads;
  if (!request.polynomial.empty()) {
    const GivenPolynomial given(request);
    return std::max(almost_linear::forward_workspace(problem, given.approximation, threads),
                    almost_linear::vjp_workspace(problem, given.approximation, threads));
  }
  if (!is_exact(request)) {
    const std::vector<approximate::Settings> settings = settings_of(request);
    return std::max(approximate::forward_workspace<T>(problem, settings, threads),
                    approximate::vjp_workspace<T>(problem, settings, threads));
  }
  return std::max(attention::forward_workspace(problem, threads), attention::vjp_workspace(problem, threads));
}

attention::Parallel parallel_of(int& threads) {
  const auto run = [](void* self, std::int64_t tasks, void (*body)(void*, std::int64_t, int), void* closure) {
    cpu::parallel_for(*static_cast<int*>(self), tasks,
                      [&](std::int64_t task, int thread) { body(closure, task, thread); });
  };
  return {threads, run, &threads};
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

/// One run of one kind of attention: its inputs, results and memory.
template <class T>
class Run {
 public:
  Run(const AttentionRequest& request, const AttentionInputs& inputs, AttentionGradients& results)
      : request_(request),
        results_(results),
        problem_(problem_of<T>(request)),
        statistics_({request.dtype, statistics_shape(request.shape)}),
        // Tensors are aligned to 64 bytes, as the workspace must be.
        workspace_({DType::boolean, {static_cast<std::int64_t>(workspace_bytes<T>(request))}}),
        threads_(request.threads),
        parallel_(parallel_of(threads_)) {
    problem_.q = rows_of<T>(inputs.q), problem_.k = rows_of<T>(inputs.k), problem_.v = rows_of<T>(inputs.v);
    cotangents_ = {rows_of<T>(inputs.g)};
    derivatives_ = {rows_of<T>(results.dq), rows_of<T>(results.dk), rows_of<T>(results.dv)};
  }

  void exactly() {
    timed([&] { attention::forward<T>(problem_, {o(), lse(), statistics()}, parallel_, workspace_.bytes()); },
          [&] {
            attention::vjp<T>(problem_, {o(), statistics()}, cotangents_, derivatives_, parallel_,
                              workspace_.bytes());
          });
  }

  void approximately() {
    const std::vector<approximate::Settings> settings = settings_of(request_);
    std::vector<approximate::HeadReport> forward(settings.size()), backward(settings.size());
    timed(
        [&] {
          approximate::forward<T>(problem_, settings, {o(), lse(), statistics(), forward}, parallel_,
                                  workspace_.bytes());
        },
        [&] {
          approximate::vjp<T>(problem_, settings, {o(), lse(), statistics(), forward}, cotangents_,
                              derivatives_, backward, parallel_, workspace_.bytes());
        });
    for (const approximate::HeadReport& report : backward) results_.reports.push_back(public_report(report));
  }

  void by_polynomial() {
    const GivenPolynomial given(request_);
    results_.denominator.emplace(TensorType{request_.dtype, {request_.shape.heads, request_.shape.queries}});
    const attention::Rows<T> denominator = rows_of<T>(*results_.denominator);
    std::vector<std::int64_t> guarded(static_cast<std::size_t>(request_.shape.kv_heads));
    timed(
        [&] {
          almost_linear::forward<T>(problem_, given.approximation, {o(), lse(), denominator, guarded.data()},
                                    parallel_, workspace_.bytes());
        },
        [&] {
          almost_linear::vjp<T>(problem_, given.approximation, {o(), denominator}, cotangents_, derivatives_,
                                parallel_, workspace_.bytes());
        });
    const std::int64_t rows = std::accumulate(guarded.begin(), guarded.end(), std::int64_t{0});
    if (rows > 0)
      throw UserError("the polynomial \"coef\" sums up to 0 or less in " + std::to_string(rows) +
                      " rows of the logits, which no weights can; expected one that is positive on them, as "
                      "truncations of exp of even degree are");
  }

 private:
  template <class Forward, class Backward>
  void timed(Forward forward, Backward backward) {
    std::vector<double> forward_seconds, backward_seconds;
    for (std::int64_t run = 0; run < request_.repetitions; ++run) {
      auto start = std::chrono::steady_clock::now();
      forward();
      forward_seconds.push_back(seconds_since(start));
      start = std::chrono::steady_clock::now();
      backward();
      backward_seconds.push_back(seconds_since(start));
    }
    results_.forward_seconds = median(std::move(forward_seconds));
    results_.backward_seconds = median(std::move(backward_seconds));
  }
  attention::Rows<T> o() { return rows_of<T>(results_.o); }
  attention::Rows<T> lse() { return rows_of<T>(results_.lse); }
  attention::Rows<T> statistics() { return rows_of<T>(statistics_); }

  const AttentionRequest& request_;
  AttentionGradients& results_;
  attention::Problem<T> problem_;
  Tensor statistics_, workspace_;
  int threads_;
  attention::Parallel parallel_;
  attention::Cotangents<T> cotangents_;
  attention::InputCotangents<T> derivatives_;
};

template <class T>
void run(const AttentionRequest& request, const AttentionInputs& inputs, AttentionGradients& results) {
  Run<T> run(request, inputs, results);
  if (!request.polynomial.empty()) run.by_polynomial();
  else if (is_exact(request)) run.exactly();
  else run.approximately();
}

}  // namespace

std::size_t attention_peak_bytes(const AttentionRequest& request) {
  const attention::Shape& s = request.shape;
  const std::int64_t elements = 2 * (element_count(q_shape(s)) + element_count(k_shape(s)) +
                                     element_count(v_shape(s)) + element_count(o_shape(s))) +
                                element_count(statistics_shape(s)) + s.heads * s.queries;
  const std::size_t workspace =
      visit_floating(request.dtype, [&]<class T>(T) { return workspace_bytes<T>(request); });
  return static_cast<std::size_t>(elements) * size_of(request.dtype) + request.key_mask.size() + workspace;
}

void keep_within(AttentionRequest& request, std::size_t limit) {
  approximate::Settings& settings = request.settings;
  if (is_exact(request) || !request.polynomial.empty() || settings.degree > 0) return;
  // As on one thread, so that degrees do not depend on how many there are.
  AttentionRequest alone = request;
  alone.threads = 1;
  for (std::int64_t memory = 32 << 20; memory >= 1024 && attention_peak_bytes(alone) > limit; memory /= 2)
    settings.memory = alone.settings.memory = memory;
}

AttentionGradients attention_gradients(const AttentionRequest& request, const AttentionInputs& inputs) {
  const attention::Shape& s = request.shape;
  const auto tensor = [&](Shape shape) { return Tensor({request.dtype, std::move(shape)}); };
  AttentionGradients results{tensor(o_shape(s)), tensor({s.heads, s.queries}), tensor(q_shape(s)),
                             tensor(k_shape(s)), tensor(v_shape(s))};
  visit_floating(request.dtype, [&]<class T>(T) { run<T>(request, inputs, results); });
  return results;
}

std::vector<AttentionHeadReport> planned_attention(const AttentionRequest& request,
                                                   const AttentionInputs& inputs) {
  const std::vector<approximate::Settings> settings = settings_of(request);
  std::vector<approximate::HeadReport> reports(settings.size());
  visit_floating(request.dtype, [&]<class T>(T) {
    attention::Problem<T> problem = problem_of<T>(request);
    problem.q = rows_of<T>(inputs.q), problem.k = rows_of<T>(inputs.k), problem.v = rows_of<T>(inputs.v);
    Tensor workspace(
        {DType::boolean,
         {static_cast<std::int64_t>(approximate::forward_workspace<T>(problem, settings, request.threads))}});
    int threads = request.threads;
    approximate::plan<T>(problem, settings, reports, parallel_of(threads), workspace.bytes());
  });
  std::vector<AttentionHeadReport> result;
  for (const approximate::HeadReport& report : reports) result.push_back(public_report(report));
  return result;
}

}  // namespace loipe
