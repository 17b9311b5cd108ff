// SPDX-License-Identifier: Apache-2.0
#include "driver/attention_gradients.h"

#include <algorithm>
#include <chrono>

#include "attention/exact/attention.h"
#include "backends/cpu/threads.h"
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

template <class T>
std::size_t workspace_bytes(const AttentionRequest& request) {
  const attention::Problem<T> problem = problem_of<T>(request);
  return std::max(attention::forward_workspace(problem, request.threads),
                  attention::vjp_workspace(problem, request.threads));
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

template <class T>
void run(const AttentionRequest& request, const AttentionInputs& inputs, AttentionGradients& results) {
  attention::Problem<T> problem = problem_of<T>(request);
  problem.q = rows_of<T>(inputs.q), problem.k = rows_of<T>(inputs.k), problem.v = rows_of<T>(inputs.v);
  Tensor statistics({request.dtype, statistics_shape(request.shape)});
  // Tensors are aligned to 64 bytes, as the workspace must be.
  Tensor workspace({DType::boolean, {static_cast<std::int64_t>(workspace_bytes<T>(request))}});
  int threads = request.threads;
  const attention::Parallel parallel = parallel_of(threads);
  auto start = std::chrono::steady_clock::now();
  attention::forward<T>(problem, {rows_of<T>(results.o), rows_of<T>(results.lse), rows_of<T>(statistics)},
                        parallel, workspace.bytes());
  results.forward_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  const Tensor& o = results.o;
  attention::vjp<T>(problem, {rows_of<T>(o), rows_of<T>(statistics)}, {rows_of<T>(inputs.g)},
                    {rows_of<T>(results.dq), rows_of<T>(results.dk), rows_of<T>(results.dv)}, parallel,
                    workspace.bytes());
  results.backward_seconds = seconds_since(start);
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

AttentionGradients attention_gradients(const AttentionRequest& request, const AttentionInputs& inputs) {
  const attention::Shape& s = request.shape;
  const auto tensor = [&](Shape shape) { return Tensor({request.dtype, std::move(shape)}); };
  AttentionGradients results{tensor(o_shape(s)), tensor({s.heads, s.queries}), tensor(q_shape(s)),
                             tensor(k_shape(s)), tensor(v_shape(s))};
  visit_floating(request.dtype, [&]<class T>(T) { run<T>(request, inputs, results); });
  return results;
}

}  // namespace loipe
