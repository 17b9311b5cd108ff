// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "driver/output_file.h"
#include "driver/search.h"

namespace loipe::cli {

namespace {

struct Options {
  SubjectOptions subject;
  std::string method = "auto", objective = "published", moves = "vertex";
  std::string budget = "10", seed = "0", threads = "0";
  std::optional<std::string> out, agent, plot;
  bool no_reduce = false, corrected = false, json = false;

  PublishedGraph graph() const { return corrected ? PublishedGraph::corrected : PublishedGraph::reference; }
};

const std::vector<std::string> kMethods{"auto", "greedy", "beam", "anneal", "exact", "alphagrad"};
const std::vector<std::string> kObjectives{"published", "actual", "folded", "time"};

search::Method parse_method(const std::string& text) {
  parse_choice("--method", text, kMethods);
  if (text == "alphagrad")
    throw Unsupported(
        "--method alphagrad is not available in this version; expected auto, greedy, beam, anneal or exact");
  const auto place = std::ranges::find(kMethods, text) - kMethods.begin();
  return static_cast<search::Method>(place);
}

double parse_seconds(const std::string& text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || !(seconds > 0) || seconds > 1e6)
    throw UserError("--budget " + (text.empty() ? "''" : shortened(text)) +
                    ": expected seconds above 0, at most a million, such as 10 or 0.5");
  return seconds;
}

void refuse_what_is_to_come(const Options& options) {
  parse_choice("--objective", options.objective, kObjectives);
  if (options.objective != "published" && options.objective != "actual")
    throw Unsupported("--objective " + options.objective +
                      " is not available in this version; expected published or actual");
  parse_choice("--moves", options.moves, {"vertex", "edge"});
  if (options.moves == "edge")
    throw Unsupported("--moves edge is not available in this version; expected vertex");
  if (options.agent) throw Unsupported("--agent is not available in this version: there is no agent to play");
  if (options.plot) throw Unsupported("--plot is not available in this version; --json has the history");
}

search::SearchOptions search_options(const Options& options) {
  search::SearchOptions search;
  search.method = parse_method(options.method);
  search.budget_seconds = parse_seconds(options.budget);
  search.seed = static_cast<std::uint64_t>(parse_integer("--seed", options.seed, 0));
  search.threads = parse_threads(options.threads);
  search.reduce = !options.no_reduce;
  return search;
}

void print_json_result(const Options& options, const Subject& subject, const search::SearchOptions& search,
                       const SubjectSearch& found) {
  const search::SearchResult& result = found.result;
  Json json;
  json["schema"] = kJsonSchema;
  json["task"] = subject.name();
  json["scale"] = subject.scale();
  json["batch"] = subject.batch().value_or(1);
  json["multiplications"] = multiplications_json(found.counts);
  json["additions"] = additions_json(found.counts);
  json["objective"] = options.objective;
  json["method"] = result.method;
  json["lower_bound"] = result.lower_bound ? Json(*result.lower_bound) : Json(nullptr);
  json["optimal"] = result.is_optimal();
  json["seconds"] = result.seconds;
  json["seed"] = search.seed;
  json["graph"] = found.graph_hash;
  json["order"] = result.order;
  json["history"] = result.history;
  print_json(json);
}

void print_text_result(const Options& options, const Subject& subject, const SubjectSearch& found) {
  const search::SearchResult& result = found.result;
  std::string text =
      subject.name() + ": " + with_thousands(result.cost) + " multiplications (" + options.objective + "), ";
  if (result.is_optimal()) text += "proved optimal";
  else if (result.lower_bound) text += "at least " + with_thousands(*result.lower_bound) + " by proof";
  else text += "no lower bound known";
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.2f", result.seconds);
  text += "; found by " + result.method + " in " + seconds + " s\n";
  text += "published " + (found.counts.published ? with_thousands(*found.counts.published) : "-") +
          ", actual " + with_thousands(found.counts.actual_multiplications) + ", folded " +
          with_thousands(found.counts.folded_multiplications) + " multiplications; " +
          std::to_string(result.reduced) + " of " + std::to_string(result.order.size()) +
          " vertices were eliminated safely before the search\norder:";
  for (int vertex : result.order) text += " " + std::to_string(vertex);
  print(text + "\n");
}

int run(const Options& options, const Terminal& terminal) {
  SubjectSearchOptions search{search_options(options), {}, options.graph()};
  refuse_what_is_to_come(options);
  if (options.objective == "actual") search.objective = Objective::actual;
  const Subject subject = options.subject.subject();
  subject.refuse_example_batch("search");
  if (options.out) check_writable(*options.out);
  search.search.progress = [&terminal, budget = search.search.budget_seconds](double seconds,
                                                                              std::int64_t cost) {
    terminal.progress("search, best " + with_thousands(cost), static_cast<std::int64_t>(1000 * seconds),
                      static_cast<std::int64_t>(1000 * budget));
  };
  const Program program = subject.program();
  const SubjectSearch found = search_subject(subject, program, search);
  if (options.out) {
    const UninterruptedSection section;
    write_file(*options.out, order_file_text(subject, found, search));
  }
  if (options.json) print_json_result(options, subject, search.search, found);
  else print_text_result(options, subject, found);
  return 0;
}

Action declare(CLI::App& app, Terminal& terminal) {
  auto options = std::make_shared<Options>();
  options->subject.declare(app);
  app.add_option("--method", options->method, "auto, greedy, beam, anneal or exact (default auto)")
      ->option_text("METHOD");
  app.add_option("--objective", options->objective, "what is made small: published (default) or actual")
      ->option_text("OBJECTIVE");
  app.add_option("--moves", options->moves, "vertex (the default)")->option_text("MOVES");
  app.add_option("--agent", options->agent, "not available yet")->option_text("FILE");
  app.add_option("--plot", options->plot, "not available yet")->option_text("FILE.svg");
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

const Command kSearchCommand{"search", "Search for an elimination order of few multiplications",
                             "  loipe search RoeFlux_1d\n"
                             "  loipe search Encoder --scale 16 --budget 60 --out best.json\n"
                             "  loipe search HumanHeartDipole --method exact --json",
                             declare};

}  // namespace loipe::cli
