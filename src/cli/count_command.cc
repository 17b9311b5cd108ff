// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/table.h"
#include "driver/counted_cost.h"

namespace loipe::cli {

namespace {

struct Options {
  SubjectOptions subject;
  std::optional<std::string> order;
  bool corrected = false;
  bool time = false;
  bool json = false;

  PublishedGraph graph() const { return corrected ? PublishedGraph::corrected : PublishedGraph::reference; }
};

std::string number(std::int64_t value) { return with_thousands(value); }
std::string number(std::optional<std::int64_t> value) { return value ? with_thousands(*value) : "-"; }

std::string microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", 1e6 * seconds);
  return text;
}

int vertex_count(const Program& program) {
  const std::vector<int> numbers = program.vertex_numbers();
  return numbers.empty() ? 0 : *std::ranges::max_element(numbers);
}

std::string heading(const Subject& subject, const Program& program) {
  std::string text = subject.name();
  if (subject.task() && subject.task()->has_scale) text += ", scale " + std::to_string(subject.scale());
  if (subject.batch()) text += ", batch " + std::to_string(*subject.batch());
  return text + ": " + std::to_string(vertex_count(program)) + " vertices, " +
         std::to_string(eliminable_vertices(program).size()) + " to eliminate";
}

/// Predicted seconds of orders, where they are asked for.
class Times {
 public:
  Times(const Options& options, const Subject& subject, const Program& program) {
    if (options.time) cost_.emplace(subject, program, Objective::time, time_constants_of_this_machine());
  }

  std::optional<double> of(const EliminationOrder& order) const {
    if (!cost_) return std::nullopt;
    return 1e-12 * static_cast<double>(cost_->of(order).cost);
  }

 private:
  std::optional<CountedCost> cost_;
};

void print_one(const Options& options, const Subject& subject, const Program& program) {
  const EliminationOrder order = subject_order(options.order.value_or("reverse"), subject, program,
                                               options.graph(), Objective::published);
  const OrderCounts counts = count_order(subject, program, order, options.graph());
  Json json;
  json["schema"] = kJsonSchema;
  json["task"] = subject.name();
  json["scale"] = subject.scale();
  json["batch"] = subject.batch().value_or(1);
  json["order_name"] = order.name;
  json["vertices"] = vertex_count(program);
  json["eliminated"] = order.has_moves() ? order.moves.size() : order.vertices.size();
  json["multiplications"] = multiplications_json(counts);
  json["additions"] = additions_json(counts);
  json["executed"] = operations_json(counts.executed);
  json["products"] = counts.statistics.products;
  json["fill_ins"] = counts.statistics.fill_ins;
  json["absorptions"] = counts.statistics.absorptions;
  json["peak_live_elements"] = counts.statistics.peak_elements;
  if (const auto seconds = Times(options, subject, program).of(order)) json["predicted_seconds"] = *seconds;
  json["corrected"] = options.corrected;
  add_order(json, order, program);
  print_json(json);
}

void print_table(const Options& options, const Subject& subject, const Program& program) {
  const std::vector<std::string> names =
      options.order ? std::vector<std::string>{*options.order} : subject_order_names(subject);
  const Times times(options, subject, program);
  std::vector<std::string> columns{"order",      "published mul", "actual mul", "actual add", "folded mul",
                                   "folded add", "products",      "fill-ins",   "peak live"};
  if (options.time) columns.emplace_back("predicted us");
  Table table(columns);
  for (const std::string& name : names) {
    const EliminationOrder order =
        subject_order(name, subject, program, options.graph(), Objective::published);
    const OrderCounts c = count_order(subject, program, order, options.graph());
    std::vector<std::string> row{name,
                                 number(c.published),
                                 number(c.actual_multiplications),
                                 number(c.actual_additions),
                                 number(c.folded_multiplications),
                                 number(c.folded_additions),
                                 number(c.statistics.products),
                                 number(c.statistics.fill_ins),
                                 number(c.statistics.peak_elements)};
    if (const auto seconds = times.of(order)) row.push_back(microseconds(*seconds));
    table.add(row);
  }
  print(heading(subject, program) + "\n\n" + table.text() +
        "\npublished: by the counting rule of the AlphaGrad papers (- where it does not apply)\n"
        "actual: recorded by elimination; folded: executed beyond the function itself, after all passes\n"
        "peak live: the most numbers that edges hold at once\n");
}

int run(const Options& options) {
  const Subject subject = options.subject.subject();
  subject.refuse_example_batch("count");
  const Program program = subject.program();
  if (options.json) print_one(options, subject, program);
  else print_table(options, subject, program);
  return 0;
}

Action declare(CLI::App& app, Terminal&) {
  auto options = std::make_shared<Options>();
  options->subject.declare(app);
  app.add_option("--order", options->order,
                 "forward, reverse, markowitz, markowitz-published, alphagrad, best (that for the published "
                 "count; best-actual, best-folded), random:SEED or a JSON file "
                 "(default: a table of all; with --json reverse)")
      ->option_text("ORDER");
  app.add_flag("--corrected", options->corrected,
               "published counts on the true graph, where the reference implementation misplaces edges "
               "(BlackScholes_Jacobian)");
  app.add_flag("--time", options->time, "also the predicted time of one run on this machine");
  app.add_flag("--json", options->json, "print JSON");
  return [options] { return run(*options); };
}

}  // namespace

const Command kCountCommand{"count", "Count the operations of elimination orders, by all cost models",
                            "  loipe count Encoder\n"
                            "  loipe count RoeFlux_1d --order alphagrad --json\n"
                            "  loipe count Encoder --scale 16 --order my_order.json\n"
                            "  loipe count BlackScholes_Jacobian --corrected",
                            declare};

}  // namespace loipe::cli
