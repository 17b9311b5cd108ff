// SPDX-License-Identifier: Apache-2.0
#include "agent/evaluator.h"

#include <algorithm>

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

std::vector<Evaluation> Network::evaluate(std::span<const Tensor> weights,
                                          std::span<const Observation* const> observations) const {
  std::vector<std::size_t> order(observations.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  const auto size = [&](std::size_t k) { return padded_tokens(observations[k]->tokens()); };
  std::ranges::stable_sort(order, std::greater{}, size);
  std::vector<Evaluation> results(observations.size());
  for (std::size_t first = 0; first < order.size();) {
    const std::int64_t n = size(order[first]);
    std::size_t last = first;
    while (last < order.size() && last < first + at(kGroup) && size(order[last]) == n) ++last;
    const auto count = static_cast<std::int64_t>(last - first);
    // A group that is nearly full is filled up with empty positions; a smaller one is run singly.
    const std::int64_t run = count > kGroup / 2 ? kGroup : 1;
    for (; first < last; first += at(std::min(run, count))) {
      ObservationBatch batch(run, n);
      const std::int64_t here = std::min(run, count);
      for (std::int64_t k = 0; k < here; ++k) batch.set(k, *observations[order[first + at(k)]]);
      std::vector<float> logits(at(run * n)), values(at(run));
      std::vector<ConstBytes> arguments;
      for (const Tensor& weight : weights) arguments.push_back(weight.bytes());
      for (std::span<const float> array : batch.arguments()) arguments.push_back(std::as_bytes(array));
      const std::span<std::byte> outputs[] = {std::as_writable_bytes(std::span<float>(logits)),
                                              std::as_writable_bytes(std::span<float>(values))};
      forward_program({run, n}).run(arguments, outputs);
      for (std::int64_t k = 0; k < here; ++k) {
        const Observation& observation = *observations[order[first + at(k)]];
        const auto row = logits.begin() + k * n;
        results[order[first + at(k)]] = {{row, row + observation.tokens()},
                                         cost_of_value(values[at(k)], observation.reference_cost)};
      }
    }
  }
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
