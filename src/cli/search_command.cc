// SPDX-License-Identifier: Apache-2.0
#include "agent/general_agent.h"
#include "agent/player.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "driver/output_file.h"
#include "driver/search.h"
#include "orders/moves.h"

namespace loipe::cli {

namespace {

struct Options {
  SubjectOptions subject;
  std::string method = "auto", moves = "vertex";
  std::string budget = "10", seed = "0", threads = "0";
  std::optional<std::string> objective, out, agent, simulations, plot;
  bool no_reduce = false, corrected = false, json = false;

  PublishedGraph graph() const { return corrected ? PublishedGraph::corrected : PublishedGraph::reference; }
};

constexpr std::int64_t kSimulations = 16, kMostSimulations = 4096;

const std::vector<std::string> kMethods{"auto", "greedy", "beam", "anneal", "exact", "alphagrad"};
search::Method parse_method(const std::string& text) {
  parse_choice("--method", text, kMethods);
  if (text == "alphagrad") return search::Method::automatic;  // the agent plays instead
  const auto place = std::ranges::find(kMethods, text) - kMethods.begin();
  return static_cast<search::Method>(place);
}

/// --method alphagrad: a trained agent plays instead of the methods of src/orders/search.
void seat_agent(const Options& options, SubjectSearchOptions& search) {
  if (options.method != "alphagrad") {
    if (options.agent) throw UserError("--agent is played by --method alphagrad only");
    if (options.simulations) throw UserError("--simulations are made by --method alphagrad only");
    return;
  }
  if (search.moves == search::MoveSet::edge)
    throw Unsupported("--method alphagrad eliminates vertices only; expected --moves vertex");
  if (search.objective != Objective::published)
    throw Unsupported("--method alphagrad plays for the published cost only; expected --objective published");
  const std::int64_t simulations =
      options.simulations ? parse_integer("--simulations", *options.simulations, 0) : kSimulations;
  if (simulations > kMostSimulations)
    throw UserError("--simulations " + *options.simulations + ": expected at most " +
                    std::to_string(kMostSimulations));
  auto agent = std::make_shared<const agent::Agent>(options.agent ? agent::read_agent(*options.agent)
                                                                  : agent::general_agent());
  search.player_hash = agent->hash;
  search.player = [agent, simulations](const published::Graph& graph, const search::SearchOptions& limits) {
    return agent::search_with_agent(*agent, graph, limits, static_cast<int>(simulations));
  };
}

search::SearchOptions search_options(const Options& options) {
  search::SearchOptions search;
  search.method = parse_method(options.method);
  search.budget_seconds = parse_seconds("--budget", options.budget);
  search.seed = static_cast<std::uint64_t>(parse_integer("--seed", options.seed, 0));
  search.threads = parse_threads(options.threads);
  search.reduce = !options.no_reduce;
  return search;
}

/// Costs as people and JSON want them: seconds, or counts.
Json cost_json(Objective objective, std::int64_t cost) {
  return objective == Objective::time ? Json(1e-12 * static_cast<double>(cost)) : Json(cost);
}

std::string cost_text(Objective objective, std::int64_t cost) {
  if (objective != Objective::time) return with_thousands(cost) + " " + unit_of(objective);
  char text[48];
  std::snprintf(text, sizeof text, "%.4g microseconds", 1e-6 * static_cast<double>(cost));
  return text;
}

EliminationOrder order_of(const search::SearchResult& result) {
  return {"search", result.order, result.moves};
}

void print_json_result(const Subject& subject, const Program& program, const SubjectSearchOptions& options,
                       const SubjectSearch& found) {
  const search::SearchResult& result = found.result;
  Json json;
  json["schema"] = kJsonSchema;
  json["task"] = subject.name();
  json["scale"] = subject.scale();
  json["batch"] = subject.batch().value_or(1);
  json["multiplications"] = multiplications_json(found.counts);
  json["additions"] = additions_json(found.counts);
  json["objective"] = to_string(options.objective);
  json["cost"] = cost_json(options.objective, result.cost);
  json["method"] = result.method;
  json["lower_bound"] =
      result.lower_bound ? cost_json(options.objective, *result.lower_bound) : Json(nullptr);
  json["optimal"] = result.is_optimal();
  json["seconds"] = result.seconds;
  json["seed"] = options.search.seed;
  json["graph"] = found.graph_hash;
  if (!options.player_hash.empty()) json["agent"] = options.player_hash;
  add_order(json, order_of(result), program);
  json["history"] = Json::array();
  for (const search::HistoryPoint& point : result.history)
    json["history"].push_back({point.seconds, cost_json(options.objective, point.cost)});
  print_json(json);
}

void print_text_result(const Subject& subject, const Program& program, const SubjectSearchOptions& options,
                       const SubjectSearch& found) {
  const search::SearchResult& result = found.result;
  std::string text = subject.name() + ": " + cost_text(options.objective, result.cost) + " (" +
                     (options.objective == Objective::time ? "predicted " : "") +
                     to_string(options.objective) + "), ";
  if (result.is_optimal()) text += "proved optimal";
  else if (result.lower_bound)
    text += "at least " + cost_text(options.objective, *result.lower_bound) + " by proof";
  else text += "no lower bound known";
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.2f", result.seconds);
  text += "; found by " + result.method + " in " + seconds + " s\n";
  text += "published " + (found.counts.published ? with_thousands(*found.counts.published) : "-") +
          ", actual " + with_thousands(found.counts.actual_multiplications) + ", folded " +
          with_thousands(found.counts.folded_multiplications) + " multiplications and " +
          with_thousands(found.counts.folded_additions) + " additions\n";
  if (result.reduced > 0)
    text += std::to_string(result.reduced) + " vertices were eliminated safely before the search\n";
  if (!result.moves.empty()) return print(text + "moves: " + to_string(result.moves, program) + "\n");
  text += "order:";
  for (int vertex : result.order) text += " " + std::to_string(vertex);
  print(text + "\n");
}

SubjectSearchOptions parse(const Options& options) {
  SubjectSearchOptions search{search_options(options)};
  search.graph = options.graph();
  // Named methods and edges are parts of the published game; without them, time counts.
  const bool is_plain = options.method == "auto" && options.moves == "vertex";
  search.objective =
      parse_objective(options.objective.value_or(is_plain ? "time" : "published"), "--objective");
  const bool has_edges = parse_choice("--moves", options.moves, {"vertex", "edge"}) == "edge";
  search.moves = has_edges ? search::MoveSet::edge : search::MoveSet::vertex;
  return search;
}

/// A bar with the best cost and the time left.
auto progress_on(const Terminal& terminal, const SubjectSearchOptions& options) {
  return [&terminal, objective = options.objective, budget = options.search.budget_seconds](
             double seconds, std::int64_t cost) {
    char left[32];
    std::snprintf(left, sizeof left, "%.0f s left", std::max(0.0, budget - seconds));
    terminal.progress("search, best " + cost_text(objective, cost) + ", " + left,
                      static_cast<std::int64_t>(1000 * seconds), static_cast<std::int64_t>(1000 * budget));
  };
}

int run(const Options& options, const Terminal& terminal) {
  SubjectSearchOptions search = parse(options);
  seat_agent(options, search);
  const Subject subject = options.subject.subject();
  subject.refuse_example_batch("search");
  for (const auto& file : {options.out, options.plot})
    if (file) check_writable(*file);
  if (search.objective == Objective::time) search.constants = time_constants_of_this_machine();
  search.search.progress = progress_on(terminal, search);
  const Program program = subject.program();
  const SubjectSearch found = search_subject(subject, program, search);
  if (options.out) {
    const UninterruptedSection section;
    write_file(*options.out, order_file_text(subject, program, found, search));
  }
  if (options.plot) {
    const std::string picture = search_plot(subject, program, found, search);
    const UninterruptedSection section;
    write_file(*options.plot, picture);
  }
  if (options.json) print_json_result(subject, program, search, found);
  else print_text_result(subject, program, search, found);
  return 0;
}

Action declare(CLI::App& app, Terminal& terminal) {
  auto options = std::make_shared<Options>();
  options->subject.declare(app);
  app.add_option("--method", options->method, "auto, greedy, beam, anneal, exact or alphagrad (default auto)")
      ->option_text("METHOD");
  app.add_option(
         "--objective", options->objective,
         "what is made small: published, actual, folded or time (default: time; published with --method "
         "or --moves)")
      ->option_text("OBJECTIVE");
  app.add_option("--moves", options->moves,
                 "what is eliminated at a time: vertex (default), or edge: vertices and edges")
      ->option_text("MOVES");
  app.add_option("--agent", options->agent, "what alphagrad plays with (default: the general agent)")
      ->option_text("FILE");
  app.add_option("--simulations", options->simulations,
                 "simulated games per move of alphagrad (default 16; 0: one game by the policy alone)")
      ->option_text("N");
  app.add_option("--plot", options->plot, "draws cost over time, with published values as lines")
      ->option_text("FILE.svg");
  app.add_option("--budget", options->budget, "the most time to take (default 10)")->option_text("SECONDS");
  app.add_option("--seed", options->seed, "the same seed and budget give the same order (default 0)")
      ->option_text("N");
  app.add_option("--threads", options->threads, "0: all cores (default); the order does not depend on it")
      ->option_text("N");
  app.add_option("--out", options->out, "writes the order, to be read by --order FILE")
      ->option_text("ORDER.json");
  app.add_flag("--no-reduce", options->no_reduce, "search without safe eliminations first");
  app.add_flag("--corrected", options->corrected,
               "the true graph, where the reference implementation misplaces edges (BlackScholes_Jacobian)");
  app.add_flag("--json", options->json, "print JSON");
  return [options, &terminal] { return run(*options, terminal); };
}

}  // namespace

const Command kSearchCommand{"search", "Search for an elimination order of little cost",
                             "  loipe search RoeFlux_1d\n"
                             "  loipe search Encoder --scale 16 --budget 60 --out best.json\n"
                             "  loipe search HumanHeartDipole --method exact --json",
                             declare};

}  // namespace loipe::cli
