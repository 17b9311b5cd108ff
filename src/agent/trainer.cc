// SPDX-License-Identifier: Apache-2.0
#include "agent/trainer.h"

#include <algorithm>
#include <map>

#include "agent/training_graphs.h"
#include "base/parallel.h"
#include "orders/search/reduce.h"

namespace loipe::agent {

namespace {

constexpr std::size_t kGroup = 8;   ///< games that are played together, examples of one run
constexpr std::size_t kChunks = 4;  ///< runs whose mean gradient makes a step
constexpr std::size_t kHeldOut = 24;
constexpr std::uint64_t kHeldOutSeed = 0x68656c64;  ///< the same graphs for every training

std::uint64_t mixed(std::uint64_t seed, std::uint64_t stream) {
  return Rng(seed * 0x9e3779b97f4a7c15u + stream).next();
}

Agent new_agent(const TrainOptions& options, const std::vector<TrainingGraph>& graphs) {
  Rng rng(mixed(options.seed, 1));
  Agent agent(options.architecture, initial_weights(options.architecture, options.prior, rng));
  agent.record.seed = options.seed;
  agent.record.reduce = options.reduce;
  agent.record.prior = options.prior;
  if (!graphs.empty()) agent.record.tasks = "";
  for (const TrainingGraph& graph : graphs)
    agent.record.tasks += (agent.record.tasks.empty() ? "" : ",") + graph.name;
  return agent;
}

double ratio(std::int64_t cost, double reference) {
  return (static_cast<double>(cost) + 1) / (reference + 1);
}

}  // namespace

std::int64_t greedy_cost(const published::Graph& graph, bool reduce) {
  Game game(graph);
  if (reduce) search::eliminate_safe_vertices(game);
  Scores scores(game);
  for (std::vector<int> left = game.legal_vertices(); !left.empty();) {
    const auto best = std::ranges::min_element(
        left, {}, [&](int vertex) { return scores.look_ahead(game.node_of(vertex)); });
    scores.apply(game, *best);
    left.erase(best);
  }
  return game.total();
}

Trainer::Trainer(std::vector<TrainingGraph> graphs, const TrainOptions& options, std::optional<Agent> agent)
    : graphs_(std::move(graphs)),
      options_(options),
      threads_(thread_count(options.threads)),
      agent_(agent ? std::move(*agent) : new_agent(options, graphs_)),
      network_(agent_.architecture),
      best_games_(graphs_.size()) {
  for (const TrainingGraph& graph : graphs_)
    greedy_costs_.push_back(static_cast<double>(greedy_cost(graph.graph, options.reduce)));
  Rng rng(kHeldOutSeed);
  for (std::size_t k = 0; graphs_.empty() && k < kHeldOut; ++k) {
    held_out_.push_back({"random", random_training_graph(rng, options.most_vertices)});
    held_out_greedy_costs_.push_back(
        static_cast<double>(greedy_cost(held_out_.back().graph, options.reduce)));
  }
  agent_.hash = hash_of(agent_.weights);
}

RoundReport Trainer::run_round() {
  TrainingRecord& record = agent_.record;
  Rng rng(mixed(record.seed, static_cast<std::uint64_t>(record.rounds) + 100));
  std::vector<published::Graph> fresh;
  std::vector<GameSpec> specs;
  std::vector<std::size_t> tasks;
  const auto games = static_cast<std::size_t>(options_.games_per_round);
  if (graphs_.empty()) {
    for (std::size_t k = 0; k < games; ++k)
      fresh.push_back(random_training_graph(rng, options_.most_vertices));
    for (const published::Graph& graph : fresh) specs.push_back({&graph, rng.next()});
  } else {
    for (std::size_t k = 0; k < games; ++k) {
      tasks.push_back(k % graphs_.size());
      specs.push_back({&graphs_[tasks.back()].graph, rng.next()});
    }
  }
  PlayOptions play_options{options_.effort, published::RuleSet::published, options_.reduce, true, {}};
  std::vector<PlayedGame> played = play(specs, play_options);

  RoundReport report;
  std::size_t positions = 0;
  for (std::size_t k = 0; k < played.size(); ++k) {
    const double reference = graphs_.empty() ? static_cast<double>(greedy_cost(fresh[k], options_.reduce))
                                             : greedy_costs_[tasks[k]];
    report.mean_ratio += ratio(played[k].cost, reference) / static_cast<double>(played.size());
    record.moves += played[k].moves;
    record.simulated_moves += played[k].simulated_moves;
    positions += played[k].examples.size();
    remember(played[k]);
    if (graphs_.empty()) continue;
    PlayedGame& best = best_games_[tasks[k]];
    if (!best.is_finished || played[k].best.cost < best.best.cost) best = std::move(played[k]);
  }
  record.games += static_cast<std::int64_t>(played.size());
  report.loss = learn(positions);
  ++record.rounds;
  agent_.hash = hash_of(agent_.weights);
  report.round = record.rounds;
  report.games = record.games;
  report.moves = record.moves;
  report.simulated_moves = record.simulated_moves;
  for (const PlayedGame& best : best_games_) report.best_costs.push_back(best.best.cost);
  return report;
}

std::vector<PlayedGame> Trainer::play(const std::vector<GameSpec>& specs, const PlayOptions& options) const {
  std::vector<PlayedGame> played(specs.size());
  const std::size_t groups = (specs.size() + kGroup - 1) / kGroup;
  run_parallel(groups, threads_, [&](std::size_t group) {
    const std::size_t first = group * kGroup, count = std::min(kGroup, specs.size() - first);
    std::vector<PlayedGame> games =
        play_games(network_, agent_.weights, std::span(specs).subspan(first, count), options);
    std::ranges::move(games, played.begin() + static_cast<std::ptrdiff_t>(first));
  });
  return played;
}

void Trainer::remember(PlayedGame& game) {
  for (Example& example : game.examples)
    replay_.push_back(std::make_shared<const Example>(std::move(example)));
  game.examples.clear();
  while (replay_.size() > options_.replay) replay_.pop_front();
}

double Trainer::learn(std::size_t new_positions) {
  if (replay_.empty()) return 0;
  Rng rng(mixed(agent_.record.seed, static_cast<std::uint64_t>(agent_.record.rounds) + 1'000'000'000));
  const double wanted = options_.reuse * static_cast<double>(new_positions) / (kChunks * kGroup);
  const auto steps = std::max<std::int64_t>(1, static_cast<std::int64_t>(wanted));
  double loss = 0;
  for (std::int64_t k = 0; k < steps; ++k) loss += step(rng);
  return loss / static_cast<double>(steps);
}

/// Each run takes examples of one padded size: that of one drawn from all, so that sizes
/// occur as often as in the replay.
double Trainer::step(Rng& rng) {
  std::map<std::int64_t, std::vector<const Example*>> by_size;
  std::vector<std::vector<const Example*>> chunks;
  const auto draw = [&] {
    return replay_[static_cast<std::size_t>(rng.below(static_cast<std::int64_t>(replay_.size())))].get();
  };
  while (chunks.size() < kChunks) {
    const Example* example = draw();
    std::vector<const Example*>& bucket = by_size[padded_tokens(example->observation.tokens())];
    bucket.push_back(example);
    if (bucket.size() == kGroup) chunks.push_back(std::exchange(bucket, {}));
  }
  std::vector<double> losses(kChunks);
  std::vector<std::vector<Tensor>> parts(kChunks);
  run_parallel(kChunks, threads_, [&](std::size_t k) {
    for (const Tensor& weight : agent_.weights) parts[k].emplace_back(weight.type());
    losses[k] = network_.add_gradient(agent_.weights, chunks[k], parts[k]);
  });
  double loss = 0;
  for (std::size_t k = 0; k < kChunks; ++k) {
    loss += losses[k] / kChunks;
    for (std::size_t w = 0; w < parts[k].size(); ++w) {
      const std::span<float> sum = parts[0][w].elements<float>();
      const std::span<const float> part = parts[k][w].elements<float>();
      for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] = ((k == 0 ? 0.0F : sum[i]) + part[i] / static_cast<float>(kChunks));
    }
  }
  agent_.adam.step(agent_.weights, parts[0], options_.adam);
  return loss;
}

void Trainer::measure_policy(RoundReport& report) const {
  const std::vector<TrainingGraph>& graphs = graphs_.empty() ? held_out_ : graphs_;
  const std::vector<double>& references = graphs_.empty() ? held_out_greedy_costs_ : greedy_costs_;
  std::vector<GameSpec> specs;
  for (const TrainingGraph& graph : graphs) specs.push_back({&graph.graph, 0});
  const SearchEffort policy_alone{0, 1, 0};
  const std::vector<PlayedGame> played =
      play(specs, {policy_alone, published::RuleSet::published, options_.reduce, false, {}});
  for (std::size_t k = 0; k < played.size(); ++k) {
    report.policy_ratio += ratio(played[k].cost, references[k]) / static_cast<double>(played.size());
    if (!graphs_.empty()) report.policy_costs.push_back(played[k].cost);
  }
}

}  // namespace loipe::agent
