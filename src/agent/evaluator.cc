// SPDX-License-Identifier: Apache-2.0
#include "agent/evaluator.h"

#include <algorithm>
#include <numeric>

#include "frontends/trace.h"
#include "passes/runner.h"

namespace loipe::agent {

namespace {

/// Positions of one run: the network's time per position hardly depends on it.
constexpr std::int64_t kGroup = 8;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// Logarithms beyond that teach nothing.
constexpr double kLargestValue = 5;

}  // namespace

const Executable& Network::forward_program(Key key) const {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Executable>& program = forward_[key];
  if (program) return *program;
  std::vector<Argument> arguments = weight_arguments(architecture_);
  const std::size_t weights = arguments.size();
  for (Argument& argument : observation_arguments(key.first, key.second))
    arguments.push_back(std::move(argument));
  const auto function = [&](std::span<const Traced> all) {
    const Prediction prediction = predict(architecture_, all.first(weights), all.subspan(weights));
    return std::vector<Traced>{prediction.logits, prediction.values};
  };
  program = find_backend("jit").compile(run_passes(trace("agent", arguments, function)), {.threads = 1});
  return *program;
}

const Derivative& Network::gradient_program(Key key) const {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Derivative>& program = gradients_[key];
  if (program) return *program;
  std::vector<Argument> arguments = weight_arguments(architecture_);
  const std::size_t weights = arguments.size();
  for (Argument& argument : observation_arguments(key.first, key.second))
    arguments.push_back(std::move(argument));
  const std::size_t inputs = arguments.size();
  arguments.push_back({"policies", {DType::f32, {key.first, key.second}}});
  arguments.push_back({"values", {DType::f32, {key.first}}});
  const auto function = [&](std::span<const Traced> all) {
    const Prediction prediction =
        predict(architecture_, all.first(weights), all.subspan(weights, inputs - weights));
    return std::vector<Traced>{training_loss(prediction, all[inputs], all[inputs + 1], kValueWeight)};
  };
  DerivativeOptions options{.threads = 1};
  for (std::size_t k = 0; k < weights; ++k) options.wrt.emplace_back(static_cast<int>(k));
  program = std::make_unique<Derivative>(
      derivative_of_function(DerivativeKind::gradient, function, arguments, options));
  return *program;
}

void Network::evaluate_group(std::span<const Tensor> weights, std::span<const Observation* const> group,
                             std::int64_t run, std::int64_t n, std::span<Evaluation> results) const {
  ObservationBatch batch(run, n);
  for (std::size_t k = 0; k < group.size(); ++k) batch.set(static_cast<std::int64_t>(k), *group[k]);
  std::vector<float> logits(at(run * n)), values(at(run));
  std::vector<ConstBytes> arguments;
  for (const Tensor& weight : weights) arguments.push_back(weight.bytes());
  for (std::span<const float> array : batch.arguments()) arguments.push_back(std::as_bytes(array));
  const std::span<std::byte> outputs[] = {std::as_writable_bytes(std::span<float>(logits)),
                                          std::as_writable_bytes(std::span<float>(values))};
  forward_program({run, n}).run(arguments, outputs);
  for (std::size_t k = 0; k < group.size(); ++k) {
    const auto row = logits.begin() + static_cast<std::int64_t>(k) * n;
    results[k] = {{row, row + group[k]->tokens()}, cost_of_value(values[k], group[k]->reference_cost)};
  }
}

std::vector<Evaluation> Network::evaluate(std::span<const Tensor> weights,
                                          std::span<const Observation* const> observations) const {
  std::vector<std::size_t> order(observations.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto size = [&](std::size_t k) { return padded_tokens(observations[k]->tokens()); };
  std::ranges::sort(order, {}, [&](std::size_t k) { return std::pair(-size(k), k); });
  std::vector<const Observation*> sorted;
  for (std::size_t k : order) sorted.push_back(observations[k]);
  std::vector<Evaluation> sorted_results(order.size()), results(order.size());
  for (std::size_t first = 0; first < order.size();) {
    const std::int64_t n = size(order[first]);
    std::size_t count = 1;
    while (count < at(kGroup) && first + count < order.size() && size(order[first + count]) == n) ++count;
    // A group that is nearly full is filled up with empty positions; others are run singly.
    const bool is_full = count > at(kGroup) / 2;
    if (!is_full) count = 1;
    evaluate_group(weights, std::span(sorted).subspan(first, count), is_full ? kGroup : 1, n,
                   std::span(sorted_results).subspan(first, count));
    first += count;
  }
  for (std::size_t k = 0; k < order.size(); ++k) results[order[k]] = std::move(sorted_results[k]);
  return results;
}

double Network::add_gradient(std::span<const Tensor> weights, std::span<const Example* const> examples,
                             std::vector<Tensor>& gradients) const {
  const auto count = static_cast<std::int64_t>(examples.size());
  const std::int64_t n = padded_tokens(examples[0]->observation.tokens());
  ObservationBatch batch(count, n);
  std::vector<float> policies(at(count * n), 0.0F), values(at(count));
  for (std::int64_t k = 0; k < count; ++k) {
    const Example& example = *examples[at(k)];
    batch.set(k, example.observation);
    std::ranges::copy(example.policy, policies.begin() + k * n);
    values[at(k)] =
        static_cast<float>(std::clamp(value_of_cost(example.cost_to_go, example.observation.reference_cost),
                                      -kLargestValue, kLargestValue));
  }
  std::vector<std::span<const float>> arguments;
  for (const Tensor& weight : weights) arguments.push_back(weight.elements<float>());
  for (std::span<const float> array : batch.arguments()) arguments.push_back(array);
  arguments.emplace_back(policies);
  arguments.emplace_back(values);
  float loss = 0;
  std::vector<Tensor> parts;
  std::vector<std::span<float>> results{{&loss, 1}};
  for (const Tensor& weight : weights) parts.emplace_back(weight.type());
  for (Tensor& part : parts) results.push_back(part.elements<float>());
  gradient_program({count, n}).run<float>(arguments, results);
  for (std::size_t w = 0; w < parts.size(); ++w) {
    const std::span<float> sum = gradients[w].elements<float>();
    const std::span<const float> part = parts[w].elements<float>();
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += part[k];
  }
  return loss;
}

}  // namespace loipe::agent
