// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "agent/trainer.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "driver/output_file.h"
#include "driver/subject_order.h"

namespace loipe::cli {

namespace {

using agent::Agent;
using agent::RoundReport;
using agent::Trainer;

constexpr std::int64_t kMostRounds = 1'000'000;
/// How often the agent is written while training goes on.
constexpr double kCheckpointSeconds = 20;
/// Of the time may go into games of the policy alone, which only show how it does.
constexpr double kMeasuredShare = 0.1;

struct Options {
  std::string tasks = "random", budget = "600", seed = "0", threads = "0";
  std::optional<std::string> rounds, games, simulations, considered, prior, reference, width, layers;
  std::optional<std::string> resume, out;
  bool no_reduce = false, json = false;
};

double number_option(const char* option, const std::optional<std::string>& text, double otherwise) {
  return text ? parse_number(option, *text) : otherwise;
}

std::int64_t integer_option(const char* option, const std::optional<std::string>& text,
                            std::int64_t otherwise, std::int64_t most) {
  if (!text) return otherwise;
  const std::int64_t value = parse_integer(option, *text, 1);
  if (value > most)
    throw UserError(std::string(option) + " " + *text + ": expected at most " + std::to_string(most));
  return value;
}

agent::TrainOptions train_options(const Options& options) {
  agent::TrainOptions train;
  train.seed = static_cast<std::uint64_t>(parse_integer("--seed", options.seed, 0));
  train.threads = parse_threads(options.threads);
  train.reduce = !options.no_reduce;
  train.games_per_round = static_cast<int>(integer_option("--games", options.games, 32, 4096));
  train.effort.simulations =
      static_cast<int>(integer_option("--simulations", options.simulations, train.effort.simulations, 4096));
  train.effort.considered =
      static_cast<int>(integer_option("--considered", options.considered, train.effort.considered, 1024));
  train.prior = number_option("--prior", options.prior, train.prior);
  train.architecture.width = integer_option("--width", options.width, train.architecture.width, 512);
  train.architecture.layers = integer_option("--layers", options.layers, train.architecture.layers, 32);
  if (options.reference &&
      parse_choice("--reference", *options.reference, {"completion", "costs"}) == "costs")
    train.architecture.reference = agent::Reference::summed_costs;
  agent::check_architecture(train.architecture);
  return train;
}

std::vector<agent::TrainingGraph> graphs_of(const std::string& tasks) {
  std::vector<agent::TrainingGraph> graphs;
  if (tasks == "random") return graphs;
  for (const std::string& name : split_list("--tasks", tasks)) {
    const Subject subject(SubjectRequest{name, {}, {}});
    graphs.push_back(
        {subject.name(), published_graph(subject, subject.program(), PublishedGraph::reference)});
  }
  return graphs;
}

/// What goes on is the network and its tasks; options that would change it are refused.
std::optional<Agent> resumed_agent(const Options& options, const std::vector<agent::TrainingGraph>& graphs) {
  if (!options.resume) return {};
  for (const auto& [name, value] : {std::pair("--width", &options.width),
                                    {"--layers", &options.layers},
                                    {"--prior", &options.prior},
                                    {"--reference", &options.reference}})
    if (*value) throw UserError(std::string(name) + " is that of the agent that --resume goes on from");
  Agent agent = agent::read_agent(*options.resume);
  std::string tasks = graphs.empty() ? "random" : "";
  for (const agent::TrainingGraph& graph : graphs) tasks += (tasks.empty() ? "" : ",") + graph.name;
  if (agent.record.tasks != tasks)
    throw UserError("--resume " + *options.resume + " was trained on " + shortened(agent.record.tasks) +
                    ", not on " + shortened(tasks) + ": give --tasks " + shortened(agent.record.tasks));
  return agent;
}

/// One training from the command line.
class Session {
 public:
  Session(const Options& options, const Terminal& terminal)
      : options_(options),
        terminal_(terminal),
        budget_(parse_seconds("--budget", options.budget)),
        rounds_(options.rounds ? parse_integer("--rounds", *options.rounds, 1) : kMostRounds),
        path_(required("--out", options.out)),
        train_(train_options(options)),
        trainer_(start()) {}

  int run() {
    RoundReport last;
    measure(last);
    while (done_ < rounds_ && !is_out_of_time()) {
      const double before = seconds();
      last = trainer_.run_round();
      round_seconds_ = seconds() - before;
      ++done_;
      if (measured_ + last_measured_ <= kMeasuredShare * seconds() || done_ == rounds_) measure(last);
      if (seconds() - written_ > kCheckpointSeconds) write();
      show(last);
    }
    if (curve_.back()["round"] != last.round) measure(last);
    write();
    print_result(last);
    return 0;
  }

 private:
  Trainer start() {
    check_writable(path_);
    std::vector<agent::TrainingGraph> graphs = graphs_of(options_.tasks);
    std::optional<Agent> agent = resumed_agent(options_, graphs);
    if (agent) earlier_seconds_ = agent->record.seconds;
    for (const agent::TrainingGraph& graph : graphs) names_.push_back(graph.name);
    return {std::move(graphs), train_, std::move(agent)};
  }

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  /// A round that would end far behind the budget is not begun.
  bool is_out_of_time() const { return done_ > 0 && seconds() + round_seconds_ / 2 > budget_; }

  void measure(RoundReport& report) {
    const double before = seconds();
    trainer_.measure_policy(report);
    last_measured_ = seconds() - before;
    measured_ += last_measured_;
    const agent::TrainingRecord& record = trainer_.agent().record;
    Json point;
    point["round"] = record.rounds;
    point["games"] = record.games;
    point["moves"] = record.moves;
    point["simulated_moves"] = record.simulated_moves;
    point["seconds"] = earlier_seconds_ + seconds();
    point["loss"] = report.loss;
    point["search_ratio"] = report.mean_ratio;
    point["policy_ratio"] = report.policy_ratio;
    if (!names_.empty()) {
      point["best_costs"] = report.best_costs;
      point["policy_costs"] = report.policy_costs;
    }
    curve_.push_back(point);
  }

  void write() {
    Agent agent = trainer_.agent();
    agent.record.seconds = earlier_seconds_ + seconds();
    agent.record.command = command();
    const UninterruptedSection section;
    agent::write_agent(path_, agent);
    written_ = seconds();
  }

  /// What makes this agent again; an earlier training is named by its own.
  std::string command() const {
    std::string text = "loipe train --tasks " + options_.tasks + " --seed " + options_.seed + " --rounds " +
                       std::to_string(done_);
    const auto add = [&](const char* name, const std::optional<std::string>& value) {
      if (value) text += std::string(" ") + name + " " + *value;
    };
    add("--games", options_.games);
    add("--simulations", options_.simulations);
    add("--considered", options_.considered);
    add("--prior", options_.prior);
    add("--reference", options_.reference);
    add("--width", options_.width);
    add("--layers", options_.layers);
    if (options_.no_reduce) text += " --no-reduce";
    add("--resume", options_.resume);
    return text;
  }

  void show(const RoundReport& report) const {
    std::string text =
        "train, round " + std::to_string(report.round) + ", " + std::to_string(report.games) + " games";
    if (report.best_costs.size() == 1) text += ", best " + with_thousands(report.best_costs.front());
    const double left = std::max(0.0, budget_ - seconds());
    text += ", " + std::to_string(static_cast<int>(left)) + " s left";
    terminal_.progress(text, static_cast<std::int64_t>(1000 * std::min(seconds(), budget_)),
                       static_cast<std::int64_t>(1000 * budget_));
  }

  void print_result(const RoundReport& report) const {
    const Agent& agent = trainer_.agent();
    if (options_.json) {
      Json json;
      json["schema"] = kJsonSchema;
      json["tasks"] = options_.tasks;
      json["seed"] = agent.record.seed;
      json["rounds"] = report.round;
      json["games"] = report.games;
      json["moves"] = report.moves;
      json["simulated_moves"] = report.simulated_moves;
      json["seconds"] = seconds();
      json["out"] = path_;
      json["agent"] = agent.hash;
      json["command"] = command();
      Json best = Json::array();
      for (std::size_t k = 0; k < names_.size(); ++k) {
        const agent::Completion& game = trainer_.best_games()[k].best;
        best.push_back({{"task", names_[k]}, {"cost", game.cost}, {"order", game.vertices}});
      }
      json["best"] = best;
      json["curve"] = curve_;
      return print_json(json);
    }
    char ratios[96];
    std::snprintf(ratios, sizeof ratios, "%.4f of look-ahead greedy before, %.4f after",
                  curve_.front()["policy_ratio"].get<double>(), curve_.back()["policy_ratio"].get<double>());
    std::string text = "agent " + agent.hash + " after " + std::to_string(report.round) + " rounds, " +
                       with_thousands(report.games) + " games, " + with_thousands(report.moves) +
                       " moves and " + with_thousands(report.simulated_moves) +
                       " simulated ones; its policy without search costs " + ratios + "\n";
    for (std::size_t k = 0; k < names_.size(); ++k)
      text += names_[k] + ": best game " + with_thousands(report.best_costs[k]) + " multiplications\n";
    print(text + "written to " + path_ + "\n");
  }

  const Options& options_;
  const Terminal& terminal_;
  double budget_;
  std::int64_t rounds_;
  std::string path_;
  agent::TrainOptions train_;
  std::vector<std::string> names_;
  double earlier_seconds_ = 0;
  Trainer trainer_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::int64_t done_ = 0;
  double round_seconds_ = 0, measured_ = 0, last_measured_ = 0, written_ = 0;
  std::vector<Json> curve_;
};

Action declare(CLI::App& app, Terminal& terminal) {
  auto options = std::make_shared<Options>();
  app.add_option("--tasks", options->tasks, "built-in functions, or random graphs (default random)")
      ->option_text("TASKS|random");
  app.add_option("--budget", options->budget,
                 "time to train, at least one round and to the end of the last one (default 600)")
      ->option_text("SECONDS");
  app.add_option("--rounds", options->rounds, "rounds of games and learning (default: as the budget allows)")
      ->option_text("N");
  app.add_option("--seed", options->seed, "the same seed and rounds give the same agent (default 0)")
      ->option_text("N");
  app.add_option("--threads", options->threads, "0: all cores (default); the agent does not depend on it")
      ->option_text("N");
  app.add_option("--resume", options->resume, "an agent to go on from")->option_text("FILE");
  app.add_option("--out", options->out, "where the agent is written, now and then and at the end")
      ->option_text("AGENT.safetensors");
  app.add_option("--games", options->games, "games per round (default 32)")->option_text("N");
  app.add_option("--simulations", options->simulations, "simulated games per move")->option_text("N");
  app.add_option("--considered", options->considered, "moves that share the simulations")->option_text("N");
  app.add_option("--prior", options->prior,
                 "how strongly the untrained policy follows look-ahead greedy (default 4; 0: from nothing)")
      ->option_text("X");
  app.add_option("--reference", options->reference,
                 "what values are relative to: completion by a heuristic (default) or costs of all vertices")
      ->option_text("completion|costs");
  app.add_option("--width", options->width, "numbers per vertex in the network (default 32)")
      ->option_text("N");
  app.add_option("--layers", options->layers, "layers of the network (default 2)")->option_text("N");
  app.add_flag("--no-reduce", options->no_reduce, "the published game, without safe eliminations");
  app.add_flag("--json", options->json, "print JSON, with the curve of learning");
  return [options, &terminal] { return Session(*options, terminal).run(); };
}

}  // namespace

const Command kTrainCommand{"train", "Train an AlphaGrad agent by self-play",
                            "  loipe train --tasks RobotArm_6DOF --budget 60 --out robot.safetensors\n"
                            "  loipe train --budget 1500 --seed 1 --out general.safetensors\n"
                            "  loipe search g --method alphagrad --agent general.safetensors",
                            declare};

}  // namespace loipe::cli
