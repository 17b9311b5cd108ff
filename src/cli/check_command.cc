// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/table.h"
#include "driver/check.h"
#include "driver/input_tensors.h"
#include "tasks/inputs.h"

namespace loipe::cli {

namespace {

struct Options {
  SubjectOptions subject;
  std::optional<std::string> inputs, against, wrt, dtype, threads, seed, directions, tolerance, pattern;
  std::string order = "reverse";
  std::string backend = "jit";
  bool json = false;
};

std::string scientific(double value) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.1e", value);
  return buffer.data();
}

double parse_tolerance(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value) || value < 0)
    throw UserError("--tolerance " + shortened(text) + ": expected a number of 0 or more");
  return value;
}

CheckOptions parse(const Options& options) {
  CheckOptions result;
  result.jacobian.order = options.order;
  result.against = options.against.value_or(options.order == "reverse" ? "forward" : "reverse");
  result.jacobian.backend = options.backend;
  find_backend(options.backend);
  if (options.wrt) result.jacobian.wrt = split_list("--wrt", *options.wrt);
  if (options.dtype) result.jacobian.dtype = parse_floating("--dtype", *options.dtype);
  if (options.threads) result.jacobian.threads = parse_threads(*options.threads);
  if (options.seed) result.seed = static_cast<std::uint64_t>(parse_integer("--seed", *options.seed, 0));
  if (options.directions) {
    constexpr std::int64_t kMostDirections = 10'000;
    result.directions =
        static_cast<int>(std::min(parse_integer("--directions", *options.directions, 1), kMostDirections));
  }
  if (options.tolerance) result.tolerance = parse_tolerance(*options.tolerance);
  result.pattern_file = options.pattern;
  return result;
}

/// Those of the file, or rich ones of a task; sets the dtype and the batch axis that they have.
std::vector<Tensor> load(const Options& options, Subject& subject, CheckOptions& check) {
  if (options.inputs) {
    const SafetensorsFile file = SafetensorsFile::read(*options.inputs);
    if (!check.jacobian.dtype) check.jacobian.dtype = default_dtype(file, subject).value_or(DType::f64);
    check.jacobian.batch = plan_batch(subject, {});
    return load_inputs(file, *options.inputs, subject.argument_names(),
                       check.jacobian.batch.argument_types(subject.program(check.jacobian.dtype)));
  }
  if (!subject.task())
    throw UserError("option --inputs is missing: only built-in tasks have inputs of their own, '" +
                    subject.name() + "' has none");
  if (!check.jacobian.dtype) check.jacobian.dtype = DType::f64;
  if (subject.has_batch_axis() && !subject.batch()) {
    SubjectRequest request = options.subject.request();
    request.batch = 1;
    subject = Subject(request);
  }
  check.jacobian.batch = plan_batch(subject, {});
  return task_inputs(*subject.task(), {subject.scale(), subject.batch().value_or(1), *check.jacobian.dtype},
                     InputKind::rich, check.seed);
}

void print_tables(const CheckReport& report) {
  Table lines({"check", "deviation", "tolerance", ""});
  for (const CheckLine& line : report.lines)
    lines.add(
        {line.what, scientific(line.deviation), scientific(line.tolerance), line.holds() ? "ok" : "FAILED"});
  Table zeros({"block", "rows", "columns", "entries", "structural zeros", "numeric zeros"});
  for (const BlockZeros& z : report.zeros)
    zeros.add({z.name, with_thousands(z.rows), with_thousands(z.columns), with_thousands(z.entries),
               with_thousands(z.rows * z.columns - z.entries), with_thousands(z.numeric_zeros)});
  print(lines.text() + "\n" + zeros.text());
  if (report.patterns.empty()) return;
  Table patterns({"declared pattern", "missing", "first", "always zero", "first"});
  for (const PatternDifference& p : report.patterns)
    patterns.add({p.name, with_thousands(p.missing), p.first_missing, with_thousands(p.always_zero),
                  p.first_always_zero});
  print("\n" + patterns.text());
}

Json lines_json(const CheckReport& report) {
  Json list = Json::array();
  for (const CheckLine& line : report.lines)
    list.push_back({{"check", line.what},
                    {"deviation", line.deviation},
                    {"tolerance", line.tolerance},
                    {"holds", line.holds()}});
  return list;
}

Json zeros_json(const CheckReport& report) {
  Json list = Json::array();
  for (const BlockZeros& z : report.zeros)
    list.push_back({{"block", z.name},
                    {"rows", z.rows},
                    {"columns", z.columns},
                    {"entries", z.entries},
                    {"structural_zeros", z.rows * z.columns - z.entries},
                    {"numeric_zeros", z.numeric_zeros}});
  return list;
}

Json patterns_json(const CheckReport& report) {
  Json list = Json::array();
  for (const PatternDifference& p : report.patterns)
    list.push_back({{"block", p.name}, {"missing", p.missing}, {"always_zero", p.always_zero}});
  return list;
}

void print_report(const CheckReport& report, const Subject& subject, const CheckOptions& check, bool json) {
  if (!json) return print_tables(report);
  print_json({{"schema", kJsonSchema},
              {"task", subject.name()},
              {"scale", subject.scale()},
              {"batch", subject.batch().value_or(1)},
              {"order_name", check.jacobian.order},
              {"dtype", to_string(*check.jacobian.dtype)},
              {"seed", check.seed},
              {"checks", lines_json(report)},
              {"zeros", zeros_json(report)},
              {"patterns", patterns_json(report)}});
}

/// The first mistake that was found ends the command with the exit code of a failed check.
void throw_if_failed(const CheckReport& report, const Subject& subject) {
  const std::string failed = "check of '" + subject.name() + "' failed: ";
  for (const CheckLine& line : report.lines)
    if (!line.holds())
      throw Error(ErrorCode::check_failed, failed + line.what + " deviates by " + scientific(line.deviation) +
                                               ", expected at most " + scientific(line.tolerance));
  for (const PatternDifference& p : report.patterns)
    if (p.missing > 0)
      throw Error(ErrorCode::check_failed,
                  failed + "the declared pattern of " + p.name + " lacks " + std::to_string(p.missing) +
                      " entries that can differ from zero, the first at " + p.first_missing);
}

int run(const Options& options, const Terminal& terminal) {
  Subject subject = options.subject.subject();
  subject.refuse_example_batch("check");
  CheckOptions check_options = parse(options);
  const std::vector<Tensor> inputs = load(options, subject, check_options);
  const CheckReport report = check(subject, check_options, inputs);
  print_report(report, subject, check_options, options.json);
  for (const PatternDifference& p : report.patterns)
    if (p.always_zero > 0)
      terminal.note("warning: the declared pattern of " + p.name + " has " + std::to_string(p.always_zero) +
                    " positions that are always zero, the first at " + p.first_always_zero);
  throw_if_failed(report, subject);
  return 0;
}

Action declare(CLI::App& app, Terminal& terminal) {
  auto options = std::make_shared<Options>();
  options->subject.declare(app);
  app.add_option("--inputs", options->inputs,
                 "safetensors file with in.<argument> (default for tasks: rich inputs)")
      ->option_text("FILE");
  app.add_option("--order", options->order, "the order to check (default reverse)")->option_text("ORDER");
  app.add_option("--against", options->against, "the other order (default reverse, or forward)")
      ->option_text("ORDER");
  app.add_option("--wrt", options->wrt, "arguments to differentiate by (default: all floating)")
      ->option_text("NAMES");
  app.add_option("--dtype", options->dtype, "f32 or f64 (default: that of the inputs, else f64)")
      ->option_text("DTYPE");
  app.add_option("--backend", options->backend, "jit (default) or reference")->option_text("NAME");
  app.add_option("--threads", options->threads, "threads of one run (default 0: all cores)")
      ->option_text("N");
  app.add_option("--directions", options->directions, "random directions of differences (default 3)")
      ->option_text("N");
  app.add_option("--seed", options->seed, "of directions and rich inputs (default 1)")->option_text("N");
  app.add_option("--tolerance", options->tolerance, "allowed deviation (default: by dtype)")
      ->option_text("T");
  app.add_option("--pattern", options->pattern,
                 "safetensors file of declared patterns, named as jacobian --format coo or csr names them: "
                 "entries that it lacks fail the check, positions that are always zero are warned of")
      ->option_text("FILE");
  app.add_flag("--json", options->json, "print JSON");
  return [options, &terminal] { return run(*options, terminal); };
}

}  // namespace

const Command kCheckCommand{"check", "Compare a Jacobian with another order and with finite differences",
                            "  loipe check Encoder --order alphagrad\n"
                            "  loipe check RoeFlux_3d --batch 4 --seed 7\n"
                            "  loipe check examples/rosenbrock.loipe --inputs in.safetensors",
                            declare};

}  // namespace loipe::cli
