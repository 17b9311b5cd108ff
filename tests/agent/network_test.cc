// SPDX-License-Identifier: Apache-2.0
// The network as Loipe compiles it: against differences, under renumbering and padding, and
// before training.
#include <gtest/gtest.h>

#include <cmath>

#include "agent/evaluator.h"
#include "agent/trainer.h"
#include "agent/training_graphs.h"

namespace loipe::agent {
namespace {

constexpr Architecture kSmall{8, 2, 1, 12};

std::vector<Tensor> random_weights(const Architecture& architecture, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> weights = initial_weights(architecture, 1, rng);
  for (Tensor& weight : weights)
    for (float& element : weight.elements<float>()) element += static_cast<float>(0.2 * rng.normal());
  return weights;
}

Observation observation_of(const published::Graph& graph) {
  Game game(graph);
  return observe(game, Scores(game), {100, 0.5});
}

Example example_of(const published::Graph& graph) {
  Example example{observation_of(graph), {}, 40};
  int legal = 0;
  for (int vertex : example.observation.vertices) legal += vertex > 0;
  for (int vertex : example.observation.vertices)
    example.policy.push_back(vertex > 0 ? 1.0F / static_cast<float>(legal) : 0.0F);
  return example;
}

TEST(Network, GradientAgreesWithDifferences) {
  Rng rng(5);
  const published::Graph graphs[] = {random_scalar_graph(rng, 9), random_scalar_graph(rng, 10)};
  const Example examples[] = {example_of(graphs[0]), example_of(graphs[1])};
  const Example* const batch[] = {&examples[0], &examples[1]};
  const Network network(kSmall);
  std::vector<Tensor> weights = random_weights(kSmall, 7), gradient, ignored;
  for (const Tensor& weight : weights) {
    gradient.emplace_back(weight.type());
    ignored.emplace_back(weight.type());
  }
  const double loss = network.add_gradient(weights, batch, gradient);
  EXPECT_TRUE(std::isfinite(loss));
  // Along random directions: f32 leaves few digits to single differences.
  for (int trial = 0; trial < 4; ++trial) {
    constexpr float kStep = 2e-3F;
    std::vector<Tensor> ahead = weights, behind = weights;
    double expected = 0;
    for (std::size_t w = 0; w < weights.size(); ++w)
      for (std::size_t k = 0; k < weights[w].elements<float>().size(); ++k) {
        const float direction = rng.chance(0.5) ? 1.0F : -1.0F;
        ahead[w].elements<float>()[k] += kStep * direction;
        behind[w].elements<float>()[k] -= kStep * direction;
        expected += direction * static_cast<double>(gradient[w].elements<float>()[k]);
      }
    const double difference =
        (network.add_gradient(ahead, batch, ignored) - network.add_gradient(behind, batch, ignored)) /
        (2.0 * kStep);
    EXPECT_NEAR(difference, expected, 0.02 * std::abs(expected) + 0.02);
  }
}

TEST(Network, PaddingAndCompanyDoNotMatter) {
  Rng rng(6);
  const published::Graph small = random_scalar_graph(rng, 8), large = random_tensor_graph(rng, 30);
  const Observation a = observation_of(small), b = observation_of(large);
  const Network network({});
  const std::vector<Tensor> weights = random_weights({}, 8);
  const Observation* const together[] = {&a, &b, &b, &a, &b, &b, &b, &b};
  const std::vector<Evaluation> all = network.evaluate(weights, together);
  const Observation* const alone[] = {&b};
  const Evaluation single = network.evaluate(weights, alone)[0];
  ASSERT_EQ(all[7].logits.size(), b.vertices.size());
  for (std::size_t t = 0; t < b.vertices.size(); ++t)
    EXPECT_NEAR(all[7].logits[t], single.logits[t], 1e-3 * (1 + std::abs(single.logits[t])));
  EXPECT_NEAR(all[7].cost_to_go, single.cost_to_go, 1e-3 * (1 + single.cost_to_go));
  EXPECT_EQ(all[0].logits, all[3].logits);
}

TEST(Network, TokensMayBeRenumbered) {
  Rng rng(9);
  const Observation straight = observation_of(random_scalar_graph(rng, 12));
  Observation turned = straight;
  const auto last = static_cast<std::int16_t>(straight.tokens() - 1);
  for (std::int16_t t = 0; t <= last; ++t) {
    const auto from = static_cast<std::ptrdiff_t>(t) * kTokenFeatures;
    turned.vertices[static_cast<std::size_t>(last - t)] = straight.vertices[static_cast<std::size_t>(t)];
    std::copy_n(straight.features.begin() + from, kTokenFeatures,
                turned.features.begin() + static_cast<std::ptrdiff_t>(last - t) * kTokenFeatures);
  }
  for (Observation::Edge& edge : turned.edges)
    edge = {static_cast<std::int16_t>(last - edge.destination), static_cast<std::int16_t>(last - edge.source),
            edge.stored};
  const Network network({});
  const Observation* const both[] = {&straight, &turned};
  const std::vector<Evaluation> results = network.evaluate(random_weights({}, 10), both);
  for (std::size_t t = 0; t < straight.vertices.size(); ++t)
    EXPECT_NEAR(results[0].logits[t], results[1].logits[straight.vertices.size() - 1 - t],
                1e-3 * (1 + std::abs(results[0].logits[t])));
  EXPECT_NEAR(results[0].cost_to_go, results[1].cost_to_go, 1e-3 * (1 + results[0].cost_to_go));
}

/// With a prior, the untrained policy is look-ahead greedy (ties aside, hence the costs).
TEST(Network, UntrainedPolicyIsGreedy) {
  Rng rng(11);
  const published::Graph graph = random_scalar_graph(rng, 40);
  TrainOptions options;
  options.seed = 3;
  std::vector<TrainingGraph> graphs;
  graphs.push_back({"drawn", graph});
  const Trainer trainer(std::move(graphs), options);
  RoundReport report;
  trainer.measure_policy(report);
  EXPECT_EQ(report.policy_costs.at(0), greedy_cost(graph, true));
}

TEST(Architecture, RefusesWhatIsNoNetwork) {
  EXPECT_THROW(check_architecture({30, 4, 2, 64}), UserError);
  EXPECT_THROW(check_architecture({32, 4, 0, 64}), UserError);
  EXPECT_THROW(check_architecture({32, 4, 2, 1 << 20}), UserError);
  EXPECT_NO_THROW(check_architecture({}));
}

}  // namespace
}  // namespace loipe::agent
