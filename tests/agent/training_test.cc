// SPDX-License-Identifier: Apache-2.0
// Self-play and learning: rules of the game, learning that shows, the same agent at any number
// of threads, and agents in files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "agent/general_agent.h"
#include "agent/player.h"
#include "agent/trainer.h"
#include "agent/training_graphs.h"
#include "driver/subject_order.h"
#include "orders/published/orders.h"
#include "tensor/safetensors.h"

namespace loipe::agent {
namespace {

using testing::HasSubstr;

published::Graph graph_of_task(const std::string& name) {
  const Subject subject(SubjectRequest{name, {}, {}});
  return published_graph(subject, subject.program(), PublishedGraph::reference);
}

std::vector<TrainingGraph> only(const std::string& name) {
  std::vector<TrainingGraph> graphs;
  graphs.push_back({name, graph_of_task(name)});
  return graphs;
}

TrainOptions small_options() {
  TrainOptions options;
  options.architecture = {16, 2, 1, 16};
  options.games_per_round = 8;
  options.effort = {4, 4, 1};
  options.seed = 5;
  return options;
}

TEST(SelfPlay, GamesAreOrdersOfTheirCosts) {
  const published::Graph graph = graph_of_task("RobotArm_6DOF");
  const Architecture architecture{16, 2, 1, 16};
  Rng rng(1);
  const std::vector<Tensor> weights = initial_weights(architecture, 0, rng);
  const Network network(architecture);
  const GameSpec specs[] = {{&graph, 1}, {&graph, 2}};
  for (bool reduce : {true, false})
    for (int simulations : {0, 3}) {
      PlayOptions options;
      options.effort = {simulations, 3, 1};
      options.reduce = reduce;
      options.keep_examples = true;
      for (const PlayedGame& game : play_games(network, weights, specs, options)) {
        EXPECT_TRUE(game.is_finished);
        published::validate_order(graph, game.order);
        EXPECT_EQ(published::count(graph, game.order), game.cost);
        EXPECT_EQ(published::count(graph, game.best.vertices), game.best.cost);
        EXPECT_LE(game.best.cost, game.cost);
        EXPECT_EQ(static_cast<std::int64_t>(game.examples.size()), game.moves);
        EXPECT_EQ(game.simulated_moves > 0, simulations > 0);
        ASSERT_FALSE(game.examples.empty());
        EXPECT_LE(game.examples.front().cost_to_go, static_cast<double>(game.cost));
        EXPECT_GE(game.examples.front().cost_to_go, game.examples.back().cost_to_go);
      }
    }
}

TEST(SelfPlay, OneLookMayPlaySeveralMovesOfALargeGraph) {
  Rng rng(2);
  const published::Graph graph = random_scalar_graph(rng, 400);
  const Network network({16, 2, 1, 16});
  const std::vector<Tensor> weights = initial_weights(network.architecture(), 4, rng);
  const GameSpec specs[] = {{&graph, 1}};
  PlayOptions options;
  options.effort = {0, 1, 0};
  const PlayedGame game = play_games(network, weights, specs, options).front();
  EXPECT_TRUE(game.is_finished);
  EXPECT_EQ(published::count(graph, game.order), game.cost);
}

/// From nothing: the policy without search gets better, and the best game is below the best
/// heuristic (Markowitz, 350).
TEST(Training, LearningShows) {
  TrainOptions options = small_options();
  options.prior = 0;
  options.architecture.reference = Reference::summed_costs;
  options.adam.learning_rate = 3e-3;
  options.reuse = 3;
  Trainer trainer(only("BlackScholes_Jacobian"), options);
  RoundReport before, after;
  trainer.measure_policy(before);
  for (int round = 0; round < 2; ++round) after = trainer.run_round();
  trainer.measure_policy(after);
  EXPECT_LT(after.policy_costs.at(0), before.policy_costs.at(0));
  EXPECT_LT(after.best_costs.at(0), 350);
  EXPECT_EQ(after.games, 16);
  EXPECT_GT(trainer.agent().adam.steps, 0);
}

TEST(Training, DoesNotDependOnThreads) {
  std::vector<std::string> hashes;
  for (int threads : {1, 3}) {
    TrainOptions options = small_options();
    options.threads = threads;
    options.most_vertices = 24;
    options.games_per_round = 20;
    Trainer trainer({}, options);
    trainer.run_round();
    trainer.run_round();
    hashes.push_back(trainer.agent().hash);
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

/// The time is not to run out, or the machine would decide how many games there are.
TEST(Player, SameSeedSameOrderAtAnyNumberOfThreads) {
  const published::Graph graph = graph_of_task("g");
  const Agent agent = general_agent();
  std::vector<search::SearchResult> results;
  for (int threads : {1, 2}) {
    search::SearchOptions options;
    options.budget_seconds = 0.4;
    options.time_limit_seconds = 600;
    options.seed = 9;
    options.threads = threads;
    results.push_back(search_with_agent(agent, graph, options, 4));
  }
  EXPECT_EQ(results[0].order, results[1].order);
  EXPECT_EQ(results[0].method, "alphagrad");
  EXPECT_EQ(published::count(graph, results[0].order), results[0].cost);
  EXPECT_LT(results[0].cost, 451);  // Markowitz, the best heuristic
  EXPECT_LE(results[0].lower_bound.value_or(0), results[0].cost);
}

/// A policy of noise: the heuristics are better and say so.
TEST(Player, IsNeverWorseThanNamedOrders) {
  const published::Graph graph = graph_of_task("Encoder");
  const Architecture architecture{8, 2, 1, 8, Reference::summed_costs};
  Rng rng(6);
  const Agent agent(architecture, initial_weights(architecture, -5, rng));
  search::SearchOptions options;
  options.reduce = false;
  options.time_limit_seconds = 600;
  search::SearchResult result = search_with_agent(agent, graph, options, 0);
  EXPECT_EQ(result.cost, 4688);
  EXPECT_EQ(result.method, "reverse");
  options.known.push_back({"alphagrad", published::reverse_order(graph)});
  result = search_with_agent(agent, graph, options, 0);
  EXPECT_EQ(result.cost, 4688);
}

class AgentFile : public testing::Test {
 protected:
  AgentFile()
      : path_((std::filesystem::path(testing::TempDir()) / "loipe-agent-test.safetensors").string()) {}
  ~AgentFile() override { std::filesystem::remove(path_); }

  static Agent agent() {
    Rng rng(4);
    const Architecture architecture{8, 2, 1, 8};
    Agent agent(architecture, initial_weights(architecture, 2.5, rng));
    agent.record = {"Simple,Hole", 7, 3, 24, 100, 800, 1.25, false, 2.5, "loipe train --seed 7"};
    agent.adam.steps = 12;
    return agent;
  }
  /// The file with other metadata and tensors.
  void rewrite(const std::function<void(NamedTensors&, Metadata&)>& change) {
    write_agent(path_, agent());
    NamedTensors tensors;
    Metadata metadata;
    {
      const SafetensorsFile file = SafetensorsFile::read(path_);
      for (const std::string& name : file.names()) tensors.emplace_back(name, file.tensor(name));
      metadata = file.metadata();
    }
    change(tensors, metadata);
    write_safetensors(path_, tensors, metadata);
  }
  void expect_refused(const std::string& text, ErrorCode code) {
    try {
      read_agent(path_);
      FAIL() << "read";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(text));
      EXPECT_EQ(error.code(), code);
    }
  }
  std::string path_;
};

TEST_F(AgentFile, ReadsBackWhatWasWritten) {
  const Agent written = agent();
  write_agent(path_, written);
  const Agent read = read_agent(path_);
  EXPECT_EQ(read.architecture, written.architecture);
  EXPECT_TRUE(read.weights == written.weights);
  EXPECT_EQ(read.hash, hash_of(written.weights));
  EXPECT_EQ(read.adam.steps, 12);
  EXPECT_EQ(read.record.tasks, "Simple,Hole");
  EXPECT_EQ(read.record.games, 24);
  EXPECT_EQ(read.record.seconds, 1.25);
  EXPECT_FALSE(read.record.reduce);
}

TEST_F(AgentFile, RefusesWhatIsNoAgent) {
  expect_refused(path_, ErrorCode::file);
  std::ofstream(path_) << "no agent";
  expect_refused(path_, ErrorCode::file);
  write_safetensors(path_, {{"x", Tensor::scalar(1.0)}});
  expect_refused("is no agent", ErrorCode::file);
  rewrite([](NamedTensors&, Metadata& metadata) { metadata["format"] = "loipe-agent-9"; });
  expect_refused("of which this version knows only", ErrorCode::unsupported);
  rewrite([](NamedTensors&, Metadata& metadata) { metadata["width"] = "16"; });
  expect_refused("the architecture of its metadata needs", ErrorCode::file);
  rewrite([](NamedTensors&, Metadata& metadata) { metadata["width"] = "seven"; });
  expect_refused("expected a number", ErrorCode::file);
  rewrite([](NamedTensors&, Metadata& metadata) { metadata["heads"] = "0"; });
  expect_refused("a network of width 8, 0 heads", ErrorCode::file);
  rewrite([](NamedTensors&, Metadata& metadata) { metadata["token_features"] = "3"; });
  expect_refused("features of a vertex", ErrorCode::unsupported);
  rewrite([](NamedTensors& tensors, Metadata&) {
    std::erase_if(tensors, [](const auto& tensor) { return tensor.first == "embed.bias"; });
  });
  expect_refused("lacks the weight 'embed.bias'", ErrorCode::file);
  rewrite([](NamedTensors& tensors, Metadata&) {
    for (auto& [name, tensor] : tensors)
      if (name == "embed.bias") tensor.set(0, std::numeric_limits<double>::quiet_NaN());
  });
  expect_refused("holds what is no number", ErrorCode::file);
}

TEST_F(AgentFile, TrainingGoesOnFromIt) {
  TrainOptions options = small_options();
  Trainer first(only("HumanHeartDipole"), options);
  first.run_round();
  write_agent(path_, first.agent());
  Trainer second(only("HumanHeartDipole"), options, read_agent(path_));
  const RoundReport report = second.run_round();
  EXPECT_EQ(report.round, 2);
  EXPECT_EQ(report.games, 16);
  EXPECT_GT(second.agent().adam.steps, first.agent().adam.steps);
}

}  // namespace
}  // namespace loipe::agent
