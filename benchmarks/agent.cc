// SPDX-License-Identifier: Apache-2.0
// What AlphaGrad learns and what the general agent is worth; the tables of
// docs/guides/alphagrad.md, as Markdown:
//
//   loipe_agent scratch [SECONDS [TASKS]]   single functions from nothing, three seeds, so many CPU
//                                           seconds each (half of them with safe eliminations),
//                                           against random play
//   loipe_agent general [FILE]              the general agent (or that of the file), one pass, on
//                                           graphs that no agent was trained on
#include <cmath>
#include <cstdio>
#include <ctime>
#include <iostream>

#include "agent/general_agent.h"
#include "agent/player.h"
#include "agent/trainer.h"
#include "agent/training_graphs.h"
#include "driver/subject_order.h"
#include "orders/published/markowitz.h"
#include "orders/published/orders.h"
#include "orders/search/reduce.h"

namespace {

using namespace loipe;
using namespace loipe::agent;

/// Of all threads: other work on the machine does not count.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

published::Graph graph_of(const std::string& task, std::int64_t scale = 1, std::int64_t batch = 1) {
  SubjectRequest request{task, {}, {}};
  if (scale > 1) request.scale = scale;
  if (batch > 1) request.batch = batch;
  const Subject subject(request);
  return published_graph(subject, subject.program(), PublishedGraph::reference);
}

std::int64_t total_of(const published::Graph& graph, const std::vector<int>& order) {
  Game game(graph);
  for (int vertex : order) game.apply(vertex);
  return game.total();
}

// Single functions from nothing.

struct ScratchRun {
  std::int64_t games = 0, moves = 0, simulated = 0;  ///< until below the best heuristic; 0: never
  double seconds = 0;                                ///< of CPU time, compiling included
  std::int64_t best = 0, all_moves = 0, policy_before = 0, policy_after = 0, random_best = 0;
  double random_mean = 0;
};

/// Games of uniformly random moves, as many moves as training made.
void play_randomly(const published::Graph& graph, bool reduce, std::uint64_t seed, ScratchRun& run) {
  Rng rng(seed);
  std::int64_t games = 0;
  for (std::int64_t moves = 0; moves < run.all_moves; ++games) {
    Game game(graph);
    if (reduce) search::eliminate_safe_vertices(game);
    for (std::vector<int> left = game.legal_vertices(); !left.empty();
         left = game.legal_vertices(), ++moves) {
      game.apply(left[static_cast<std::size_t>(rng.below(static_cast<std::int64_t>(left.size())))]);
      if (reduce) search::eliminate_safe_vertices(game);
    }
    run.random_mean += static_cast<double>(game.total());
    if (games == 0 || game.total() < run.random_best) run.random_best = game.total();
  }
  run.random_mean /= static_cast<double>(games);
}

ScratchRun train_from_nothing(const std::string& task, bool reduce, std::uint64_t seed, double seconds,
                              std::int64_t heuristic) {
  TrainOptions options;
  options.prior = 0;
  options.architecture.reference = Reference::summed_costs;
  options.games_per_round = 8;
  options.reduce = reduce;
  options.seed = seed;
  std::vector<TrainingGraph> graphs;
  graphs.push_back({task, graph_of(task)});
  const published::Graph& graph = graphs.front().graph;
  ScratchRun run;
  const published::Graph copy = graph;
  Trainer trainer(std::move(graphs), options);
  RoundReport report;
  trainer.measure_policy(report);
  run.policy_before = report.policy_costs.at(0);
  const double start = cpu_seconds();
  while (cpu_seconds() - start < seconds) {
    report = trainer.run_round();
    if (run.games > 0 || report.best_costs.at(0) >= heuristic) continue;
    run.games = report.games;
    run.moves = report.moves;
    run.simulated = report.simulated_moves;
    run.seconds = cpu_seconds() - start;
  }
  trainer.measure_policy(report);
  run.policy_after = report.policy_costs.at(0);
  run.best = report.best_costs.at(0);
  run.all_moves = report.moves;
  play_randomly(copy, reduce, seed, run);
  return run;
}

/// Published table 6.1: moves of the median seed until below the heuristic.
std::int64_t published_moves(const std::string& task) {
  if (task == "RobotArm_6DOF") return 6912;
  if (task == "HumanHeartDipole") return 124800;
  if (task == "BlackScholes_Jacobian") return 1560384;
  return 0;
}

void print_scratch(double seconds, const std::vector<std::string>& tasks) {
  constexpr int kSeeds = 3;
  std::printf(
      "| function | reduced | heuristic | games | moves | simulated | CPU s | published moves | best | "
      "policy alone, before -> after | random best (mean) "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const std::string& task : tasks)
    for (const bool reduce : {true, false}) {
      const published::Graph graph = graph_of(task);
      const std::int64_t heuristic = std::min({total_of(graph, published::reverse_order(graph)),
                                               total_of(graph, published::forward_order(graph)),
                                               total_of(graph, published::markowitz_order(graph))});
      double games = 0, moves = 0, simulated = 0, time = 0, before = 0, after = 0, random = 0;
      std::string best, random_best;
      int beaten = 0;
      for (int seed = 1; seed <= kSeeds; ++seed) {
        const ScratchRun run = train_from_nothing(task, reduce, static_cast<std::uint64_t>(seed),
                                                  reduce ? seconds / 2 : seconds, heuristic);
        beaten += run.games > 0;
        games += static_cast<double>(run.games) / kSeeds;
        moves += static_cast<double>(run.moves) / kSeeds;
        simulated += static_cast<double>(run.simulated) / kSeeds;
        time += run.seconds / kSeeds;
        before += static_cast<double>(run.policy_before) / kSeeds;
        after += static_cast<double>(run.policy_after) / kSeeds;
        random += run.random_mean / kSeeds;
        best += (best.empty() ? "" : ", ") + std::to_string(run.best);
        random_best += (random_best.empty() ? "" : ", ") + std::to_string(run.random_best);
      }
      std::printf("| %s | %s | %lld | %.0f | %.0f | %.0f | %.1f | %lld | %s | %.0f -> %.0f | %s (%.0f) |%s\n",
                  task.c_str(), reduce ? "yes" : "no", static_cast<long long>(heuristic), games, moves,
                  simulated, time, static_cast<long long>(published_moves(task)), best.c_str(), before, after,
                  random_best.c_str(), random, beaten < kSeeds ? " not by every seed" : "");
      std::fflush(stdout);
    }
}

// The general agent.

struct Contest {
  std::string name;
  published::Graph graph;
  std::int64_t optimum = 0;  ///< proved; 0: not known
};

std::vector<Contest> contests() {
  std::vector<Contest> all;
  for (const auto& [task, optimum] :
       std::initializer_list<std::pair<const char*, std::int64_t>>{{"RoeFlux_1d", 0},
                                                                   {"RoeFlux_3d", 0},
                                                                   {"RobotArm_6DOF", 221},
                                                                   {"HumanHeartDipole", 148},
                                                                   {"PropaneCombustion", 88},
                                                                   {"BlackScholes_Jacobian", 0},
                                                                   {"f", 0},
                                                                   {"g", 0},
                                                                   {"Perceptron", 0},
                                                                   {"Encoder", 0},
                                                                   {"EncoderDecoder", 0},
                                                                   {"KerrSenn", 40},
                                                                   {"CloudSchemes", 35},
                                                                   {"Lighthouse", 18},
                                                                   {"Hole", 22}})
    all.push_back({task, graph_of(task), optimum});
  all.push_back({"Encoder, scale 16", graph_of("Encoder", 16), 0});
  all.push_back({"Perceptron, scale 16, batch 512", graph_of("Perceptron", 16, 512), 0});
  Rng rng(20261130);
  for (const int vertices : {30, 100, 300, 1000, 3000})
    for (int k = 0; k < 2; ++k) {
      const std::string number = std::to_string(vertices) + (k == 0 ? "a" : "b");
      all.push_back({"scalars " + number, random_scalar_graph(rng, vertices), 0});
      all.push_back({"tensors " + number, random_tensor_graph(rng, vertices), 0});
    }
  return all;
}

void print_general(const Agent& agent) {
  std::printf(
      "| graph | optimum | Markowitz | reverse | look-ahead greedy (ms) | policy alone | with completions "
      "(ms) | annealing, same time | policy / best of Markowitz and reverse | with completions | policy / "
      "greedy "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  double log_heuristic = 0, log_completed = 0, log_greedy = 0, log_anneal = 0, worst = 0, worst_completed = 0;
  int count = 0, within = 0, within_completed = 0;
  const Network network(agent.architecture);
  for (const Contest& contest : contests()) {
    const published::Graph& graph = contest.graph;
    const std::int64_t markowitz = total_of(graph, published::markowitz_order(graph));
    const std::int64_t reverse = total_of(graph, published::reverse_order(graph));
    double start = cpu_seconds();
    const std::int64_t greedy = greedy_cost(graph, true);
    const double greedy_seconds = cpu_seconds() - start;
    const PlayOptions play{{0, 1, 0}, published::RuleSet::published, true, false, {}};
    const GameSpec spec{&graph, 0};
    play_games(network, agent.weights, {&spec, 1}, play);  // compiles what the graph needs
    start = cpu_seconds();
    const PlayedGame game = play_games(network, agent.weights, {&spec, 1}, play).front();
    const double agent_seconds = cpu_seconds() - start;
    search::SearchOptions anneal;
    anneal.method = search::Method::anneal;
    anneal.budget_seconds = agent_seconds;
    anneal.threads = 1;
    const std::int64_t annealed = search::search_order(graph, anneal).cost;
    const auto ratio = [](std::int64_t cost, std::int64_t other) {
      return static_cast<double>(cost + 1) / static_cast<double>(other + 1);
    };
    const double heuristic = ratio(game.cost, std::min(markowitz, reverse));
    const double completed = ratio(game.best.cost, std::min(markowitz, reverse));
    log_heuristic += std::log(heuristic);
    log_completed += std::log(completed);
    log_greedy += std::log(ratio(game.cost, greedy));
    log_anneal += std::log(ratio(game.best.cost, annealed));
    worst = std::max(worst, heuristic);
    worst_completed = std::max(worst_completed, completed);
    within += heuristic <= 1.03;
    within_completed += completed <= 1.03;
    ++count;
    std::printf("| %s | %s | %lld | %lld | %lld (%.1f) | %lld | %lld (%.1f) | %lld | %.3f | %.3f | %.3f |\n",
                contest.name.c_str(), contest.optimum > 0 ? std::to_string(contest.optimum).c_str() : "",
                static_cast<long long>(markowitz), static_cast<long long>(reverse),
                static_cast<long long>(greedy), 1e3 * greedy_seconds, static_cast<long long>(game.cost),
                static_cast<long long>(game.best.cost), 1e3 * agent_seconds, static_cast<long long>(annealed),
                heuristic, completed, ratio(game.cost, greedy));
    std::fflush(stdout);
  }
  std::printf(
      "\nGeometric means over %d graphs: policy / best of Markowitz and reverse %.4f (worst %.3f, %d within "
      "3 %%), with completions %.4f (worst %.3f, %d within 3 %%), policy / look-ahead greedy %.4f, with "
      "completions / annealing %.4f\n",
      count, std::exp(log_heuristic / count), worst, within, std::exp(log_completed / count), worst_completed,
      within_completed, std::exp(log_greedy / count), std::exp(log_anneal / count));
}

int run(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments[0] == "scratch") {
    std::vector<std::string> tasks{"RobotArm_6DOF", "HumanHeartDipole", "BlackScholes_Jacobian"};
    if (arguments.size() > 2) tasks.assign(arguments.begin() + 2, arguments.end());
    print_scratch(arguments.size() > 1 ? std::stod(arguments[1]) : 40, tasks);
    return 0;
  }
  if (!arguments.empty() && arguments[0] == "general") {
    print_general(arguments.size() > 1 ? read_agent(arguments[1]) : general_agent());
    return 0;
  }
  std::cerr << "usage: loipe_agent scratch [SECONDS [TASKS]] | general [FILE]\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "loipe_agent: " << error.what() << '\n';
    return 1;
  }
}
