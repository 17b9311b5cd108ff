// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "driver/emit_source.h"
#include "driver/input_tensors.h"
#include "driver/jacobian_file.h"
#include "driver/output_file.h"
#include "driver/retype.h"
#include "driver/task_jacobian.h"

namespace loipe::cli {

namespace {

struct Options {
  SubjectOptions subject;
  std::optional<std::string> inputs, out, wrt, batched, dtype, threads, memory_limit;
  std::vector<std::string> emit;  ///< language and folder
  std::string order = "reverse";
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

Request parse(const Options& options) {
  if (!options.emit.empty() && options.emit[0] != "c")
    throw UserError("--emit " + shortened(options.emit[0]) +
                    ": the one language is c, as in --emit c FOLDER");
  Request request{options.subject.subject(), {}, parse_jacobian_format(options.format), {}};
  if (request.format != JacobianFormat::dense) request.options.block_values = BlockValues::entries;
  request.options.order = options.order;
  request.options.backend = options.backend;
  find_backend(options.backend);
  if (options.wrt) request.options.wrt = split_list("--wrt", *options.wrt);
  if (options.batched) request.batched = split_list("--batched", *options.batched);
  if (options.dtype) request.options.dtype = parse_floating("--dtype", *options.dtype);
  if (options.threads) request.options.threads = parse_threads(*options.threads);
  if (options.memory_limit)
    request.options.memory_limit = parse_bytes("--memory-limit", *options.memory_limit);
  request.options.flush_subnormals = options.flush_subnormals;
  if (options.runs()) {
    required("--inputs", options.inputs);
    check_writable(required("--out", options.out));
  }
  return request;
}

Json describe(const TaskJacobian& jacobian, const Request& request) {
  const OrderCounts counts =
      order_counts(request.subject, jacobian.program(), jacobian.order(), jacobian.compilation());
  Json json;
  json["schema"] = kJsonSchema;
  json["task"] = request.subject.name();
  json["scale"] = request.subject.scale();
  json["batch"] = request.subject.batch().value_or(1);
  json["order_name"] = jacobian.order().name;
  json["backend"] = request.options.backend;
  json["multiplications"] = multiplications_json(counts);
  json["additions"] = additions_json(counts);
  json["executed"] = operations_json(counts.executed);
  json["peak_bytes"] = jacobian.peak_bytes();
  Json results = Json::array();
  for (std::size_t i = 0; i < jacobian.result_types().size(); ++i)
    results.push_back({{"name", jacobian.result_name(i)},
                       {"dtype", to_string(jacobian.result_types()[i].dtype)},
                       {"shape", jacobian.result_types()[i].shape}});
  json["results"] = results;
  json["order"] = jacobian.order().vertices;
  return json;
}

void print_description(const TaskJacobian& jacobian, const Request& request) {
  const OrderCounts counts =
      order_counts(request.subject, jacobian.program(), jacobian.order(), jacobian.compilation());
  std::vector<std::string> order;
  for (int vertex : jacobian.order().vertices) order.push_back(std::to_string(vertex));
  print("task             " + request.subject.name() + "\n" + "order            " + jacobian.order().name +
        "\n" + "multiplications  published " + (counts.published ? with_thousands(*counts.published) : "-") +
        ", actual " + with_thousands(counts.actual_multiplications) + ", folded " +
        with_thousands(counts.folded_multiplications) + "\n" + "additions        actual " +
        with_thousands(counts.actual_additions) + ", folded " + with_thousands(counts.folded_additions) +
        "\n" + "peak bytes       " + with_thousands(static_cast<std::int64_t>(jacobian.peak_bytes())) + "\n" +
        "vertices         " + join(order, " ") + "\n");
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
  std::vector<Tensor> inputs;
  if (options.runs()) {
    const Program program = request.subject.program(request.options.dtype);
    inputs = load_inputs(*file, *options.inputs, request.subject.argument_names(),
                         request.options.batch.argument_types(program));
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
  if (options.json) print_json(describe(jacobian, request));
  else if (options.dry_run) print_description(jacobian, request);
  return 0;
}

void declare_numbers(CLI::App& app, Options& options) {
  app.add_option("--dtype", options.dtype, "f32 or f64 (default: that of the inputs)")->option_text("DTYPE");
  app.add_option("--threads", options.threads, "threads of one run (default 0: all cores)")->option_text("N");
  app.add_option("--memory-limit", options.memory_limit,
                 "smaller tiles, else refuse what needs more bytes; suffixes k, M, G, T (exit code 4)")
      ->option_text("BYTES");
  app.add_flag("--flush-subnormals", options.flush_subnormals, "take subnormal numbers for 0");
}

Action declare(CLI::App& app, Terminal& terminal) {
  auto options = std::make_shared<Options>();
  options->subject.declare(app);
  app.add_option("--inputs", options->inputs, "safetensors file with in.<argument>")->option_text("FILE");
  app.add_option("--out", options->out, "safetensors file for out.<i> and jac.<i>.<argument>")
      ->option_text("FILE");
  app.add_option("--wrt", options->wrt,
                 "arguments to differentiate by, separated by commas (default: all floating)")
      ->option_text("NAMES");
  app.add_option("--order", options->order,
                 "forward, reverse, markowitz, markowitz-published, alphagrad, random:SEED or a JSON file")
      ->option_text("ORDER")
      ->capture_default_str();
  app.add_option(
         "--batched", options->batched,
         "with --batch: arguments that have an axis of examples (default: as the input file's metadata "
         "says, else all)")
      ->option_text("NAMES");
  declare_numbers(app, *options);
  app.add_option("--format", options->format, "dense, coo or csr")->option_text("FORMAT");
  app.add_option("--backend", options->backend, "jit or reference")->option_text("NAME");
  app.add_flag("--dry-run", options->dry_run, "print order, counts and peak bytes, and run nothing");
  app.add_option("--emit", options->emit, "c FOLDER: write the Jacobian of one example as C11 source")
      ->option_text("c FOLDER")
      ->expected(2);
  app.add_flag("--json", options->json, "print a description as JSON");
  return [options, &terminal] { return run(*options, terminal); };
}

}  // namespace

const Command kJacobianCommand{
    "jacobian", "Compute values and Jacobians of a task or program at given inputs",
    "  loipe jacobian Encoder --inputs in.safetensors --out jac.safetensors --order alphagrad\n"
    "  loipe jacobian RoeFlux_1d --batch 512 --inputs in.safetensors --out jac.safetensors\n"
    "  loipe jacobian examples/rosenbrock.loipe --wrt x --inputs in.safetensors --out jac.safetensors\n"
    "  loipe jacobian Encoder --scale 16 --order forward --dry-run",
    declare};

}  // namespace loipe::cli
