// SPDX-License-Identifier: Apache-2.0
#include <loipe/derivative.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "backends/backend.h"
#include "base/text.h"
#include "cli/approximation_options.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "driver/output_file.h"
#include "driver/transformer_file.h"
#include "frontends/trace.h"
#include "passes/runner.h"

namespace loipe::cli {

namespace {

struct Options {
  std::optional<std::string> inputs, out, dtype, threads, memory_limit;
  ApproximationOptions approximation;
  std::string backend = "jit", repetitions = "1";
  bool dry_run = false;
  bool json = false;
};

/// In the words of the C++ interface.
AttentionApproximation public_approximation(const attention::approximate::Settings& s) {
  return {.method = static_cast<AttentionMethod>(s.method),
          .tolerance = s.tolerance,
          .degree = s.degree,
          .coefficients = static_cast<AttentionCoefficients>(s.coefficients),
          .near = s.near,
          .clusters = s.clusters,
          .exact_keys = s.exact_keys,
          .is_forward_clustered = s.is_forward_clustered,
          .has_paper_gradient = s.has_paper_gradient,
          .memory = s.memory,
          .is_audited = s.is_audited};
}

DerivativeOptions derivative_options(const Options& options, const TransformerFile& file) {
  DerivativeOptions result;
  result.of = {0};
  for (const Argument& argument : file.arguments)
    if (argument.name != "target") result.wrt.push_back(argument.name);
  result.backend = options.backend;
  result.recompute = true;
  result.attention_reports = !options.approximation.is_exact();
  if (options.threads) result.threads = parse_threads(*options.threads);
  if (options.memory_limit) result.memory_limit = parse_bytes("--memory-limit", *options.memory_limit);
  return result;
}

/// Where degrees are open, with lower ones if the memory limit cannot be kept else.
Derivative compiled(TransformerFile& file, const Options& options,
                    attention::approximate::Settings settings) {
  const auto compile = [&] {
    if (!options.approximation.is_exact()) file.model.approximation = {{public_approximation(settings)}};
    return derivative_of_function(
        DerivativeKind::gradient, [&](std::span<const Traced> a) { return file.traced(a); }, file.arguments,
        derivative_options(options, file));
  };
  constexpr std::int64_t kMost = 32 << 20, kLeast = 1 << 20;  // of a head; at least what degree 2 takes
  const bool has_choice = !options.approximation.is_exact() && settings.degree == 0;
  for (std::int64_t memory = kMost; has_choice && options.memory_limit && memory >= kLeast; memory /= 4) {
    try {
      return compile();
    } catch (const ResourceError&) {
      settings.memory = memory;
    }
  }
  return compile();
}

/// loss [1], output, grad.X, grad.<weight>.
NamedTensors named_results(const TransformerFile& file, const DerivativeResult& result) {
  NamedTensors tensors;
  tensors.emplace_back("loss", Tensor({file.dtype, {1}}));
  tensors.back().second.set(0, result.outputs[0].at(0));
  tensors.emplace_back("output", result.outputs[1]);
  std::size_t next = 0;
  for (const Argument& argument : file.arguments)
    if (argument.name != "target")
      tensors.emplace_back("grad." + (argument.name == "X" ? std::string("X") : argument.name.substr(7)),
                           result.derivatives[next++]);
  return tensors;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Report {
  double compile_seconds = 0, seconds = 0;
  std::optional<double> loss;
  std::size_t peak_bytes = 0;
  std::vector<AttentionReport> layers;  ///< none for exact attention
};

/// Runs so often; the time is the median.
DerivativeResult run_repeatedly(const Derivative& gradient, const TransformerFile& file,
                                std::int64_t repetitions, Report& report) {
  std::vector<double> seconds;
  std::optional<DerivativeResult> result;
  for (std::int64_t run = 0; run < repetitions; ++run) {
    const auto start = std::chrono::steady_clock::now();
    result = gradient(file.inputs);
    seconds.push_back(seconds_since(start));
  }
  std::ranges::sort(seconds);
  report.seconds = seconds[seconds.size() / 2];
  return std::move(*result);
}

/// From a forward pass; with clusters, the backward pass will choose their number.
std::vector<AttentionReport> planned_layers(const TransformerFile& file, const Options& options) {
  const Program forward =
      with_attention_reports(trace("main", file.arguments, [&](auto a) { return file.traced(a); }));
  BackendOptions back_end;
  if (options.threads) back_end.threads = parse_threads(*options.threads);
  const std::vector<Tensor> results =
      find_backend(options.backend).compile(run_passes(forward, PassOptions{}), back_end)->run(file.inputs);
  std::vector<AttentionReport> layers;
  for (std::size_t i = 2; i < results.size(); ++i) layers.push_back(report_of(results[i]));
  return layers;
}

Json report_json(const Options& options, const TransformerFile& file, const Report& report) {
  const TransformerModel& model = file.model;
  Json json;
  json["schema"] = kJsonSchema;
  json["method"] = name_of(options.approximation.settings().method);
  json["arch"] = to_string(model.arch);
  json["n"] = file.tokens;
  json["layers"] = model.layers;
  json["heads"] = model.heads;
  json["head_size"] = model.head_size != 0 ? model.head_size : model.width / model.heads;
  json["dtype"] = std::string(to_string(file.dtype));
  json["loss"] = report.loss ? Json(*report.loss) : Json(nullptr);
  json["compile_seconds"] = report.compile_seconds;
  json["seconds"] = report.loss ? Json(report.seconds) : Json(nullptr);
  json["peak_bytes"] = report.peak_bytes;
  if (report.layers.empty()) return json;
  std::vector<AttentionHeadReport> all;
  json["plan"] = Json::array();
  for (const AttentionReport& layer : report.layers) {
    Json heads = Json::array();
    for (const AttentionHeadReport& head : layer.heads) heads.push_back(head_json(head)), all.push_back(head);
    json["plan"].push_back(std::move(heads));
  }
  json["certificate"] = certificate_json(all, options.approximation.settings().tolerance);
  return json;
}

std::string report_text(const TransformerFile& file, const Report& report) {
  char numbers[160];
  std::snprintf(numbers, sizeof numbers, "compiled in %.2f s, peak %.1f MiB", report.compile_seconds,
                static_cast<double>(report.peak_bytes) / (1 << 20));
  std::string text = std::to_string(file.tokens) + " tokens, " + std::to_string(file.model.layers) +
                     " layers, " + std::to_string(file.model.heads) + " heads: " + numbers;
  if (report.loss) {
    std::snprintf(numbers, sizeof numbers, ", loss and gradient in %.3f s, loss %.7g", report.seconds,
                  *report.loss);
    text += numbers;
  }
  text += "\n";
  for (std::size_t layer = 0; layer < report.layers.size(); ++layer)
    text += "  layer " + std::to_string(layer) + "\n" + heads_text(report.layers[layer].heads, "    ");
  return text;
}

int run(const Options& options, Terminal& terminal) {
  const attention::approximate::Settings settings = options.approximation.settings();
  warn_of(settings, terminal);
  const std::string& path = required("--inputs", options.inputs);
  if (!options.dry_run) check_writable(required("--out", options.out));
  std::optional<DType> dtype;
  if (options.dtype) dtype = parse_floating("--dtype", *options.dtype);
  TransformerFile file = read_transformer(path, dtype);
  const std::int64_t repetitions = parse_integer("--repetitions", options.repetitions, 1);
  Report report;
  const auto start = std::chrono::steady_clock::now();
  const Derivative gradient = compiled(file, options, settings);
  report.compile_seconds = seconds_since(start);
  report.peak_bytes = gradient.peak_bytes();
  if (options.dry_run) {
    if (!options.approximation.is_exact()) report.layers = planned_layers(file, options);
  } else {
    DerivativeResult result = run_repeatedly(gradient, file, repetitions, report);
    report.loss = result.outputs[0].at(0);
    report.layers = std::move(result.attention);
    std::vector<AttentionHeadReport> heads;
    for (const AttentionReport& layer : report.layers)
      heads.insert(heads.end(), layer.heads.begin(), layer.heads.end());
    warn_of_errors(heads, settings, terminal);
    const UninterruptedSection section;
    write_safetensors(*options.out, named_results(file, result));
  }
  if (options.json) print_json(report_json(options, file, report));
  else print(report_text(file, report));
  return 0;
}

Action declare(CLI::App& app, Terminal& terminal) {
  auto options = std::make_shared<Options>();
  app.add_option("--inputs", options->inputs,
                 "safetensors file with X, target, weight.<name> and metadata arch, layers, heads, ...")
      ->option_text("FILE");
  app.add_option("--out", options->out, "safetensors file for loss, output, grad.X, grad.<name>")
      ->option_text("FILE");
  options->approximation.declare(app, true);
  app.add_option("--dtype", options->dtype, "f32 or f64 (default: that of X)")->option_text("DTYPE");
  app.add_option("--threads", options->threads, "threads of one run (default 0: all cores)")
      ->option_text("N");
  app.add_option("--memory-limit", options->memory_limit,
                 "recompute activations, choose lower degrees, else refuse what needs more bytes; suffixes "
                 "k, M, G, T "
                 "(exit code 4)")
      ->option_text("BYTES");
  app.add_option("--backend", options->backend, "jit or reference")->option_text("NAME");
  app.add_option("--repetitions", options->repetitions, "runs, of which the median time is told (default 1)")
      ->option_text("R");
  app.add_flag("--dry-run", options->dry_run,
               "compile and print peak bytes; unless attention is exact, run the forward pass for the plan "
               "of each head");
  app.add_flag("--json", options->json, "print a description as JSON");
  return [options, &terminal] { return run(*options, terminal); };
}

}  // namespace

const Command kTransformerCommand{
    "transformer", "Compute loss and all gradients of a multi-layer transformer",
    "  loipe transformer --inputs model.safetensors --out grads.safetensors\n"
    "  loipe transformer --inputs model.safetensors --out grads.safetensors --dtype f64 --memory-limit 2G\n"
    "  loipe transformer --inputs model.safetensors --out grads.safetensors --method auto --tolerance 1e-2\n"
    "  loipe transformer --inputs model.safetensors --dry-run",
    declare};

}  // namespace loipe::cli
