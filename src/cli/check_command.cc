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
  std::optional<std::string> inputs, against, wrt, dtype, threads, seed, directions, tolerance;
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

void print_lines(const std::vector<CheckLine>& lines, const Subject& subject, const CheckOptions& check,
                 bool json) {
  if (!json) {
    Table table({"check", "deviation", "tolerance", ""});
    for (const CheckLine& line : lines)
      table.add({line.what, scientific(line.deviation), scientific(line.tolerance),
                 line.holds() ? "ok" : "FAILED"});
    return print(table.text());
  }
  Json list = Json::array();
  for (const CheckLine& line : lines)
    list.push_back({{"check", line.what},
                    {"deviation", line.deviation},
                    {"tolerance", line.tolerance},
                    {"holds", line.holds()}});
  print_json({{"schema", kJsonSchema},
              {"task", subject.name()},
              {"scale", subject.scale()},
              {"batch", subject.batch().value_or(1)},
              {"order_name", check.jacobian.order},
              {"dtype", to_string(*check.jacobian.dtype)},
              {"seed", check.seed},
              {"checks", list}});
}

int run(const Options& options) {
  Subject subject = options.subject.subject();
  subject.refuse_example_batch("check");
  CheckOptions check_options = parse(options);
  const std::vector<Tensor> inputs = load(options, subject, check_options);
  const std::vector<CheckLine> lines = check(subject, check_options, inputs);
  print_lines(lines, subject, check_options, options.json);
  const auto failed = std::ranges::find_if_not(lines, &CheckLine::holds);
  if (failed == lines.end()) return 0;
  throw Error(ErrorCode::check_failed, "check of '" + subject.name() + "' failed: " + failed->what +
                                           " deviates by " + scientific(failed->deviation) +
                                           ", expected at most " + scientific(failed->tolerance));
}

Action declare(CLI::App& app, Terminal&) {
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
  app.add_flag("--json", options->json, "print JSON");
  return [options] { return run(*options); };
}

}  // namespace

const Command kCheckCommand{"check", "Compare a Jacobian with another order and with finite differences",
                            "  loipe check Encoder --order alphagrad\n"
                            "  loipe check RoeFlux_3d --batch 4 --seed 7\n"
                            "  loipe check examples/rosenbrock.loipe --inputs in.safetensors",
                            declare};

}  // namespace loipe::cli
