// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"
#include "cli/bench_table.h"
#include "cli/command.h"

namespace loipe::cli {

namespace {

struct Options {
  SubjectOptions subject;
  std::optional<std::string> orders, repetitions, threads;
  std::string inputs = "rich";
  std::string dtype = "f32";
  std::string backend = "jit";
  bool json = false;
};

/// The four rows of the papers where they exist, else forward, reverse and markowitz.
std::vector<std::string> default_orders(const Subject& subject) {
  std::vector<std::string> names = subject_order_names(subject);
  const bool is_published = std::ranges::find(names, "alphagrad") != names.end();
  std::erase(names, is_published ? "markowitz" : "markowitz-published");
  return names;
}

BenchOptions parse(const Options& options, const Subject& subject) {
  BenchOptions result;
  result.orders = options.orders ? split_list("--orders", *options.orders) : default_orders(subject);
  result.inputs = parse_choice("--inputs", options.inputs, {"rich", "published"}) == "rich"
                      ? InputKind::rich
                      : InputKind::published;
  result.dtype = parse_floating("--dtype", options.dtype);
  result.backend = options.backend;
  find_backend(options.backend);
  if (options.threads) result.threads = parse_threads(*options.threads);
  if (options.repetitions) result.repetitions = parse_integer("--repetitions", *options.repetitions, 1);
  // A misspelt order of the last row must not cost the time of the first ones.
  const Program program = subject.program();
  for (const std::string& order : result.orders) subject_order(order, subject, program);
  return result;
}

/// The machine alone.
int run_peak(const Options& options) {
  const DType dtype = parse_floating("--dtype", options.dtype);
  const int threads = thread_count(options.threads ? parse_threads(*options.threads) : 0);
  const Machine machine = this_machine();
  const MachineSpeed speed = measure_speed(dtype, threads);
  if (options.json)
    print_json({{"schema", kJsonSchema},
                {"dtype", loipe::to_string(dtype)},
                {"threads", threads},
                {"machine", machine_json(machine, speed)}});
  else print(speed_text(machine, speed, dtype, threads));
  return 0;
}

int run(const Options& options, const Terminal& terminal) {
  const SubjectRequest request = options.subject.request();
  if (request.name == "peak") return run_peak(options);
  if (request.name == "attention") throw Unsupported("'bench attention' is not available in this version");
  if (is_program_file(request.name))
    throw UserError("bench " + request.name + ": expected a built-in task, whose inputs are known");
  const Subject subject(request);
  const BenchResult result = bench(subject, parse(options, subject), [&](const std::string& stage) {
    terminal.note("bench " + subject.name() + ": " + stage);
  });
  if (options.json) print_json(bench_json(result));
  else print(bench_text(result));
  return 0;
}

Action declare(CLI::App& app, Terminal& terminal) {
  auto options = std::make_shared<Options>();
  options->subject.declare(app);
  app.add_option("--orders", options->orders, "rows, separated by commas (default: those of the papers)")
      ->option_text("NAMES");
  app.add_option("--inputs", options->inputs, "rich (no structural zeros, default) or published")
      ->option_text("KIND");
  app.add_option("--dtype", options->dtype, "f32 (default) or f64")->option_text("DTYPE");
  app.add_option("--backend", options->backend, "jit (default) or reference")->option_text("NAME");
  app.add_option("--threads", options->threads, "threads of one run (default 0: all cores)")
      ->option_text("N");
  app.add_option("--repetitions", options->repetitions, "runs of each row (default: at most 10 s)")
      ->option_text("R");
  app.add_flag("--json", options->json, "print JSON");
  return [options, &terminal] { return run(*options, terminal); };
}

}  // namespace

const Command kBenchCommand{"bench", "Prove and time the Jacobian of a task in several orders",
                            "  loipe bench transformer\n"
                            "  loipe bench Encoder --scale 4 --orders reverse,alphagrad --json\n"
                            "  loipe bench RoeFlux_1d --batch 512 --dtype f64\n"
                            "  loipe bench peak",
                            declare};

}  // namespace loipe::cli
