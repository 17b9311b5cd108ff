// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"
#include "cli/command.h"
#include "driver/explain.h"

namespace loipe::cli {

namespace {

struct Options {
  SubjectOptions subject;
  std::string order = "reverse";
  std::optional<std::string> stage, dump, disable;
  bool dot = false;
};

int run(const Options& options) {
  const Subject subject = options.subject.subject();
  subject.refuse_example_batch("explain");
  if (options.dot && options.stage && *options.stage != "dot")
    throw UserError("--dot and --stage " + *options.stage + ": expected one of the two");
  if (options.dump && (options.dot || options.stage))
    throw UserError("--dump " + *options.dump + ": expected without --stage and --dot");
  const ExplainOptions what{options.order, parse_disable(options.disable)};
  if (options.dump) print(explain_pass(subject, what, *options.dump));
  else if (options.dot) print(explain_stage(subject, what, "dot"));
  else if (options.stage) print(explain_stage(subject, what, *options.stage));
  else print(explain_summary(subject, what));
  return 0;
}

Action declare(CLI::App& app, Terminal&) {
  auto options = std::make_shared<Options>();
  options->subject.declare(app);
  app.add_option("--order", options->order, "the elimination order (default reverse)")->option_text("ORDER");
  app.add_option("--stage", options->stage,
                 "program, graph, dot, order, accumulation, optimised, passes, costs or peak")
      ->option_text("STAGE");
  app.add_option("--dump", options->dump, "what a pass leaves (--stage passes lists them)")
      ->option_text("PASS");
  declare_disable(app, options->disable);
  app.add_flag("--dot", options->dot, "the computational graph for Graphviz");
  return [options] { return run(*options); };
}

}  // namespace

const Command kExplainCommand{"explain", "Show the stages from a function to its compiled Jacobian",
                              "  loipe explain Simple\n"
                              "  loipe explain Simple --order forward --stage accumulation\n"
                              "  loipe explain examples/rosenbrock.loipe --stage graph\n"
                              "  loipe explain Encoder --dump fusion --disable tiling\n"
                              "  loipe explain Encoder --dot | dot -Tsvg > encoder.svg",
                              declare};

}  // namespace loipe::cli
