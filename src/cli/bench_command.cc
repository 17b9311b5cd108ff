// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"
#include "cli/bench_attention_table.h"
#include "cli/bench_peak_table.h"
#include "cli/bench_table.h"
#include "cli/command.h"

namespace loipe::cli {

namespace {

struct Options {
  SubjectOptions subject;
  std::optional<std::string> orders, inputs, backend, repetitions, threads, disable;
  std::string dtype = "f32";
  bool flush_subnormals = false;
  std::optional<std::string> format;
  AttentionBenchTexts attention;
  bool json = false;
};

/// The four rows of the papers where they exist, else forward, reverse and markowitz.
std::vector<std::string> default_orders(const Subject& subject) {
  std::vector<std::string> names = subject_order_names(subject);
  const bool is_published = std::ranges::find(names, "alphagrad") != names.end();
  std::erase(names, is_published ? "markowitz" : "markowitz-published");
  // Of the shipped orders, the one for what is executed.
  if (std::erase_if(names, [](const std::string& name) { return name.starts_with("best-"); }) > 0)
    names.emplace_back("best");
  return names;
}

BenchOptions parse(const Options& options, const Subject& subject) {
  BenchOptions result;
  result.orders = options.orders ? split_list("--orders", *options.orders) : default_orders(subject);
  result.inputs = parse_choice("--inputs", options.inputs.value_or("rich"), {"rich", "published"}) == "rich"
                      ? InputKind::rich
                      : InputKind::published;
  result.dtype = parse_floating("--dtype", options.dtype);
  result.block_values = parse_choice("--format", options.format.value_or("dense"), {"dense", "coo"}) == "coo"
                            ? BlockValues::entries
                            : BlockValues::all;
  result.backend = options.backend.value_or("jit");
  find_backend(result.backend);
  if (options.threads) result.threads = parse_threads(*options.threads);
  result.flush_subnormals = options.flush_subnormals;
  result.disabled = parse_disable(options.disable);
  if (options.repetitions) result.repetitions = parse_integer("--repetitions", *options.repetitions, 1);
  // A misspelt order of the last row must not cost the time of the first ones.
  const Program program = subject.program();
  for (const std::string& order : result.orders) subject_order(order, subject, program);
  return result;
}

/// Options of orders and tasks would have no effect on what is no task.
void refuse_task_options(const Options& options, const std::string& subject, const std::string& expected) {
  const std::pair<const char*, bool> given[] = {
      {"--scale", options.subject.has_scale()},   {"--batch", options.subject.has_batch()},
      {"--orders", options.orders.has_value()},   {"--inputs", options.inputs.has_value()},
      {"--backend", options.backend.has_value()}, {"--flush-subnormals", options.flush_subnormals},
      {"--format", options.format.has_value()},   {"--disable", options.disable.has_value()}};
  for (const auto& [option, is_given] : given)
    if (is_given)
      throw UserError("bench " + subject + ": option " + std::string(option) +
                      " has no meaning here: expected " + expected);
}

/// The machine alone.
int run_peak(const Options& options, const Terminal& terminal) {
  refuse_task_options(options, "peak", "--threads, --dtype or --json");
  if (options.repetitions || options.attention.is_given())
    throw UserError(std::string("bench peak: option ") +
                    (options.repetitions ? "--repetitions" : "of attention") +
                    " has no meaning here: expected --threads, --dtype or --json");
  const DType dtype = parse_floating("--dtype", options.dtype);
  const int threads = thread_count(options.threads ? parse_threads(*options.threads) : 0);
  const PeakResult result =
      bench_peak(dtype, threads, [&](const std::string& stage) { terminal.note("bench peak: " + stage); });
  if (options.json) print_json(peak_json(result));
  else print(peak_text(result));
  return 0;
}

int run_attention(const Options& options, const Terminal& terminal) {
  refuse_task_options(options, "attention",
                      "--n, --heads, --head-size, --causal, --dtype, --threads, --repetitions or --json");
  AttentionBenchOptions request{attention_sizes(options.attention),
                                options.attention.is_causal,
                                parse_floating("--dtype", options.dtype),
                                0,
                                {}};
  if (options.threads) request.threads = parse_threads(*options.threads);
  if (options.repetitions) request.repetitions = parse_integer("--repetitions", *options.repetitions, 1);
  const AttentionBenchResult result =
      bench_attention(request, [&](const std::string& stage) { terminal.note("bench attention: " + stage); });
  if (options.json) print_json(attention_json(result));
  else print(attention_text(result));
  return 0;
}

int run(const Options& options, const Terminal& terminal) {
  const SubjectRequest request = options.subject.request();
  if (request.name == "peak") return run_peak(options, terminal);
  if (request.name == "attention") return run_attention(options, terminal);
  if (options.attention.is_given())
    throw UserError("bench " + request.name +
                    ": --n, --heads, --head-size and --causal are for bench attention");
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
  app.add_option("--format", options->format, "of blocks: dense (default), or coo, structural non-zeros only")
      ->option_text("FORMAT");
  app.add_option("--backend", options->backend, "jit (default) or reference")->option_text("NAME");
  app.add_option("--threads", options->threads, "threads of one run (default 0: all cores)")
      ->option_text("N");
  app.add_option("--repetitions", options->repetitions, "runs of each row (default: at most 10 s)")
      ->option_text("R");
  app.add_flag("--flush-subnormals", options->flush_subnormals, "runs take subnormal numbers for 0");
  declare_disable(app, options->disable);
  declare_attention_options(app, options->attention);
  app.add_flag("--json", options->json, "print JSON");
  return [options, &terminal] { return run(*options, terminal); };
}

}  // namespace

const Command kBenchCommand{"bench", "Prove and time the Jacobian of a task in several orders",
                            "  loipe bench transformer\n"
                            "  loipe bench Encoder --scale 4 --orders reverse,alphagrad --json\n"
                            "  loipe bench RoeFlux_1d --batch 512 --dtype f64\n"
                            "  loipe bench PropaneCombustion --batch 512 --format coo\n"
                            "  loipe bench attention --causal --n 4096,16384 --head-size 64\n"
                            "  loipe bench peak --threads 1 --dtype f64",
                            declare};

}  // namespace loipe::cli
