// SPDX-License-Identifier: Apache-2.0
// The commands that compute derivatives at given inputs; they differ in the kind alone.
#include <limits>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/derivative_description.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "driver/derivative_options.h"
#include "driver/emit_source.h"
#include "driver/input_tensors.h"
#include "driver/jacobian_file.h"
#include "driver/output_file.h"
#include "driver/task_jacobian.h"

namespace loipe::cli {

namespace {

struct Options {
  DerivativeKind kind;
  SubjectOptions subject;
  std::optional<std::string> inputs, out, wrt, of, batched, dtype, threads, memory_limit, directions, disable;
  std::vector<std::string> emit;  ///< language and folder
  std::string order, outer_order;
  std::string format = "dense";
  std::string backend = "jit";
  bool flush_subnormals = false;
  bool dry_run = false;
  bool json = false;

  /// Source code alone needs no inputs.
  bool runs() const { return !dry_run && (emit.empty() || inputs || out); }
};

/// The command line as values: what can be wrong with it is found here, before any file
/// is read.
struct Request {
  Subject subject;
  TaskJacobianOptions options;
  JacobianFormat format;
  std::optional<std::vector<std::string>> batched;
};

BlockValues block_values(JacobianFormat format, DerivativeKind kind) {
  if (format == JacobianFormat::dense) return BlockValues::all;
  if (format != JacobianFormat::structured) return BlockValues::entries;
  if (kind == DerivativeKind::jacobian) return BlockValues::terms;
  throw UserError("--format structured: only blocks of a Jacobian have it, not those of " + to_string(kind));
}

Request parse(const Options& options) {
  if (!options.emit.empty() && options.emit[0] != "c")
    throw UserError("--emit " + shortened(options.emit[0]) +
                    ": the one language is c, as in --emit c FOLDER");
  Request request{options.subject.subject(), {}, parse_jacobian_format(options.format), {}};
  request.options.block_values = block_values(request.format, options.kind);
  request.options.kind = options.kind;
  request.options.order = options.order;
  request.options.outer_order = options.outer_order;
  request.options.backend = options.backend;
  find_backend(options.backend);
  if (options.wrt) request.options.wrt = split_list("--wrt", *options.wrt);
  if (options.of)
    for (const std::string& position : split_list("--of", *options.of))
      request.options.of.push_back(static_cast<int>(
          std::min<std::int64_t>(parse_integer("--of", position, 0), std::numeric_limits<int>::max())));
  if (options.directions) request.options.directions = parse_integer("--directions", *options.directions, 0);
  if (request.format != JacobianFormat::dense && options.kind != DerivativeKind::jacobian &&
      options.kind != DerivativeKind::hessian)
    throw UserError("--format " + options.format +
                    ": only blocks of a Jacobian or Hessian have a sparse form, not those of " +
                    to_string(options.kind));
  if (options.batched) request.batched = split_list("--batched", *options.batched);
  if (options.dtype) request.options.dtype = parse_floating("--dtype", *options.dtype);
  if (options.threads) request.options.threads = parse_threads(*options.threads);
  if (options.memory_limit)
    request.options.memory_limit = parse_bytes("--memory-limit", *options.memory_limit);
  request.options.flush_subnormals = options.flush_subnormals;
  request.options.disabled = parse_disable(options.disable);
  if (options.runs()) {
    required("--inputs", options.inputs);
    check_writable(required("--out", options.out));
  }
  return request;
}

void write(const TaskJacobian& jacobian, std::span<const Tensor> results, const Request& request,
           const std::string& path) {
  const UninterruptedSection section;
  write_jacobian(path, jacobian, results, request.subject, request.format);
}

int run(const Options& options, const Terminal& terminal) {
  Request request = parse(options);
  std::optional<SafetensorsFile> file;
  if (options.inputs) file = SafetensorsFile::read(*options.inputs);
  if (file && !request.options.dtype) request.options.dtype = default_dtype(*file, request.subject);
  request.options.batch =
      plan_batch(request.subject, request.batched, file ? stored_batched(*file) : std::vector<std::string>{});
  if (file && has_directions(options.kind) && !options.directions)
    request.options.directions = stored_directions(*file, plan_task(request.subject, request.options));
  std::vector<Tensor> inputs;
  if (options.runs()) {
    const TaskPlan plan = plan_task(request.subject, request.options);
    inputs = load_tensors(*file, *options.inputs, plan.tensor_names(), plan.input_types());
  }
  const TaskJacobian jacobian(request.subject, request.options);
  if (!options.emit.empty()) {
    const UninterruptedSection section;
    for (const auto& path : emit_c_source(jacobian, request.subject.name(), options.emit[1]))
      terminal.note("wrote " + path.string());
  }
  if (options.runs()) {
    const std::vector<Tensor> results = jacobian.run(
        inputs, [&](std::int64_t done, std::int64_t all) { terminal.progress("examples", done, all); });
    write(jacobian, results, request, *options.out);
  }
  if (options.json) print_json(description_json(jacobian, request.subject, request.options.backend));
  else if (options.dry_run) print(description_text(jacobian, request.subject));
  return 0;
}

void declare_numbers(CLI::App& app, Options& options) {
  app.add_option("--dtype", options.dtype, "f32 or f64 (default: that of the inputs)")->option_text("DTYPE");
  app.add_option("--threads", options.threads, "threads of one run (default 0: all cores)")->option_text("N");
  app.add_option("--memory-limit", options.memory_limit,
                 "smaller tiles, else refuse what needs more bytes; suffixes k, M, G, T (exit code 4)")
      ->option_text("BYTES");
  app.add_flag("--flush-subnormals", options.flush_subnormals, "take subnormal numbers for 0");
  declare_disable(app, options.disable);
}

std::string input_help(DerivativeKind kind) {
  const std::string seeds =
      kind == DerivativeKind::vjp ? " and cotangent.<i>, with a leading axis where they are several"
      : has_directions(kind)      ? " and tangent.<argument>, with a leading axis where they are several"
                                  : "";
  return "safetensors file with in.<argument>" + seeds;
}

std::string result_help(DerivativeKind kind) {
  constexpr const char* kNames[] = {"jac.<i>.<argument>",
                                    "jvp.<i>",
                                    "vjp.<argument>",
                                    "grad.<argument>",
                                    "jac.<i>.<argument>, hess.<i>.<argument>.<argument>",
                                    "jac.<i>.<argument>, hvp.<i>.<argument>"};
  return std::string("safetensors file for out.<i>, ") + kNames[static_cast<std::size_t>(kind)];
}

void declare_derivative(CLI::App& app, Options& options) {
  app.add_option("--wrt", options.wrt,
                 "arguments to differentiate by, separated by commas (default: all floating)")
      ->option_text("NAMES");
  app.add_option("--of", options.of,
                 "outputs to differentiate, by number, separated by commas (default: all)")
      ->option_text("NUMBERS");
  app.add_option("--order", options.order,
                 "forward, reverse, markowitz, markowitz-published, alphagrad, random:SEED or a JSON file "
                 "(default " +
                     std::string(default_order(options.kind)) + ")")
      ->option_text("ORDER");
  if (is_second_order(options.kind))
    app.add_option("--outer-order", options.outer_order,
                   "of the Jacobian's program: forward, reverse, markowitz or a JSON file (default: " +
                       std::string(has_directions(options.kind) ? "forward" : "the cheaper of both") + ")")
        ->option_text("ORDER");
  if (has_directions(options.kind))
    app.add_option("--directions", options.directions,
                   "directions at once; 0: one, without an axis (default: as in the input file)")
        ->option_text("K");
}

Action declare_kind(DerivativeKind kind, CLI::App& app, Terminal& terminal) {
  auto options = std::make_shared<Options>();
  options->kind = kind;
  options->subject.declare(app);
  app.add_option("--inputs", options->inputs, input_help(kind))->option_text("FILE");
  app.add_option("--out", options->out, result_help(kind))->option_text("FILE");
  declare_derivative(app, *options);
  app.add_option(
         "--batched", options->batched,
         "with --batch: arguments that have an axis of examples (default: as the input file's metadata "
         "says, else all)")
      ->option_text("NAMES");
  declare_numbers(app, *options);
  app.add_option("--format", options->format, "dense, coo, csr or structured")->option_text("FORMAT");
  app.add_option("--backend", options->backend, "jit or reference")->option_text("NAME");
  app.add_flag("--dry-run", options->dry_run, "print order, counts and peak bytes, and run nothing");
  app.add_option("--emit", options->emit, "c FOLDER: write it for one example as C11 source")
      ->option_text("c FOLDER")
      ->expected(2);
  app.add_flag("--json", options->json, "print a description as JSON");
  return [options, &terminal] { return run(*options, terminal); };
}

template <DerivativeKind kind>
Action declare(CLI::App& app, Terminal& terminal) {
  return declare_kind(kind, app, terminal);
}

}  // namespace

const Command kJacobianCommand{
    "jacobian", "Compute values and Jacobians of a task or program at given inputs",
    "  loipe jacobian Encoder --inputs in.safetensors --out jac.safetensors --order alphagrad\n"
    "  loipe jacobian RoeFlux_1d --batch 512 --inputs in.safetensors --out jac.safetensors\n"
    "  loipe jacobian examples/rosenbrock.loipe --wrt x --inputs in.safetensors --out jac.safetensors\n"
    "  loipe jacobian Encoder --scale 16 --order forward --dry-run",
    declare<DerivativeKind::jacobian>};

const Command kJvpCommand{"jvp",
                          "Multiply the Jacobian with tangents: directions in, derivatives along them out",
                          "  loipe jvp RobotArm_6DOF --inputs in.safetensors --out jvp.safetensors\n"
                          "  loipe jvp examples/rosenbrock.loipe --directions 3 --dry-run",
                          declare<DerivativeKind::jvp>};

const Command kVjpCommand{
    "vjp", "Multiply cotangents with the Jacobian: weights of outputs in, weighted derivatives out",
    "  loipe vjp Encoder --inputs in.safetensors --out vjp.safetensors\n"
    "  loipe vjp RoeFlux_1d --batch 512 --inputs in.safetensors --out vjp.safetensors",
    declare<DerivativeKind::vjp>};

const Command kGradientCommand{
    "gradient", "Compute value and gradient of a number",
    "  loipe gradient examples/logistic_regression.loipe --of 1 --wrt w,b --inputs in.safetensors --out "
    "grad.safetensors\n"
    "  loipe gradient FreeEnergy --dry-run",
    declare<DerivativeKind::gradient>};

const Command kHessianCommand{
    "hessian", "Compute values, Jacobians and second derivatives",
    "  loipe hessian examples/rosenbrock.loipe --inputs in.safetensors --out hess.safetensors --format csr\n"
    "  loipe hessian HumanHeartDipole --order reverse --outer-order forward --dry-run",
    declare<DerivativeKind::hessian>};

const Command kHvpCommand{
    "hvp", "Multiply second derivatives with tangents",
    "  loipe hvp examples/rosenbrock.loipe --inputs in.safetensors --out hvp.safetensors",
    declare<DerivativeKind::hvp>};

}  // namespace loipe::cli
