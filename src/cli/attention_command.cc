// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "driver/attention_file.h"
#include "driver/machine.h"
#include "driver/output_file.h"

namespace loipe::cli {

namespace {

struct Options {
  std::optional<std::string> inputs, out, scale, window, dtype, threads, memory_limit, tolerance, degree;
  std::string method = "exact";
  bool is_causal = false;
  bool dry_run = false;
  bool json = false;
};

double parse_number(std::string_view option, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    throw UserError(std::string(option) + " " + shortened(text) + ": expected a finite number");
  return value;
}

void check_method(const Options& options) {
  parse_choice("--method", options.method, {"exact", "almost-linear", "clustered", "auto"});
  if (options.method == "almost-linear" || options.method == "clustered")
    throw Unsupported("--method " + options.method +
                      " is not available in this version; expected exact or auto");
  if (options.tolerance && !(parse_number("--tolerance", *options.tolerance) > 0))
    throw UserError("--tolerance " + *options.tolerance + ": expected a positive number");
  if (options.degree)
    throw UserError("--degree " + shortened(*options.degree) + ": has no meaning with --method " +
                    options.method);
}

AttentionOverrides overrides_of(const Options& options) {
  AttentionOverrides overrides;
  overrides.is_causal = options.is_causal;
  if (options.scale) overrides.scale = parse_number("--scale", *options.scale);
  if (options.window) overrides.window = parse_integer("--window", *options.window, 1);
  if (options.dtype) overrides.dtype = parse_floating("--dtype", *options.dtype);
  return overrides;
}

/// `seconds` is absent when nothing ran. A bound of 0: every weight is computed, rounding aside.
Json description_json(const AttentionRequest& request, std::optional<double> seconds) {
  const attention::Shape& s = request.shape;
  Json json;
  json["schema"] = kJsonSchema;
  json["method"] = "exact";
  json["n"] = s.queries;
  json["keys"] = s.keys;
  json["heads"] = s.heads;
  json["kv_heads"] = s.kv_heads;
  json["head_size"] = s.head_size;
  json["value_size"] = s.value_size;
  json["causal"] = request.is_causal;
  json["scale"] = request.scale;
  json["dtype"] = std::string(to_string(request.dtype));
  json["degree"] = nullptr;
  json["features"] = nullptr;
  json["clusters"] = nullptr;
  json["window"] = request.window == 0 ? Json(nullptr) : Json(request.window);
  json["threads"] = request.threads;
  json["seconds"] = seconds ? Json(*seconds) : Json(nullptr);
  json["peak_bytes"] = attention_peak_bytes(request);
  json["certificate"] = {{"kind", "exact"}, {"bound", 0.0}};
  return json;
}

std::string description_text(const AttentionRequest& request, std::optional<double> seconds) {
  const attention::Shape& s = request.shape;
  char text[240];
  std::snprintf(
      text, sizeof text, "exact: %lld heads, %lld queries, %lld keys, head size %lld, %s, peak %.1f MiB",
      static_cast<long long>(s.heads), static_cast<long long>(s.queries), static_cast<long long>(s.keys),
      static_cast<long long>(s.head_size), std::string(to_string(request.dtype)).c_str(),
      static_cast<double>(attention_peak_bytes(request)) / (1 << 20));
  std::string line = text;
  if (seconds) {
    std::snprintf(text, sizeof text, ", %.4f s", *seconds);
    line += text;
  }
  return line + "\n";
}

void write(const std::string& path, AttentionGradients& results) {
  NamedTensors tensors;
  tensors.emplace_back("O", std::move(results.o));
  tensors.emplace_back("lse", std::move(results.lse));
  tensors.emplace_back("dQ", std::move(results.dq));
  tensors.emplace_back("dK", std::move(results.dk));
  tensors.emplace_back("dV", std::move(results.dv));
  const UninterruptedSection section;
  write_safetensors(path, tensors);
}

int run(const Options& options) {
  check_method(options);
  const AttentionOverrides overrides = overrides_of(options);
  const int threads = thread_count(options.threads ? parse_threads(*options.threads) : 0);
  const std::size_t limit = options.memory_limit ? parse_bytes("--memory-limit", *options.memory_limit)
                                                 : std::numeric_limits<std::size_t>::max();
  const std::string& path = required("--inputs", options.inputs);
  if (!options.dry_run) check_writable(required("--out", options.out));
  const AttentionFile file(path, overrides, threads);
  const std::size_t peak = attention_peak_bytes(file.request());
  if (peak > limit)
    throw ResourceError("--memory-limit " + *options.memory_limit + ": attention of this size needs " +
                        with_thousands(static_cast<std::int64_t>(peak)) +
                        " bytes, expected a limit of at least that");
  std::optional<double> seconds;
  if (!options.dry_run) {
    AttentionGradients results = attention_gradients(file.request(), file.load());
    seconds = results.forward_seconds + results.backward_seconds;
    write(*options.out, results);
  }
  if (options.json) print_json(description_json(file.request(), seconds));
  else print(description_text(file.request(), seconds));
  return 0;
}

Action declare(CLI::App& app, Terminal&) {
  auto options = std::make_shared<Options>();
  app.add_option("--inputs", options->inputs,
                 "safetensors file with Q, K, V, G, maybe key_mask, and metadata causal, scale, window")
      ->option_text("FILE");
  app.add_option("--out", options->out, "safetensors file for O, lse, dQ, dK, dV")->option_text("FILE");
  app.add_flag("--causal", options->is_causal, "query i looks at keys 0 to i (default: as in the file)");
  app.add_option("--scale", options->scale,
                 "of the logits (default: that of the file, else 1 / sqrt(head size))")
      ->option_text("C");
  app.add_option("--window", options->window, "query i looks at keys nearer than W (default: as in the file)")
      ->option_text("W");
  app.add_option("--method", options->method, "exact (default) or auto")->option_text("METHOD");
  app.add_option("--tolerance", options->tolerance, "relative error that approximate methods may have")
      ->option_text("T");
  app.add_option("--degree", options->degree, "of the polynomial of method almost-linear")->option_text("G");
  app.add_option("--dtype", options->dtype, "f32 or f64 (default: that of the inputs)")->option_text("DTYPE");
  app.add_option("--threads", options->threads, "threads of one run (default 0: all cores)")
      ->option_text("N");
  app.add_option("--memory-limit", options->memory_limit,
                 "refuse what needs more bytes; suffixes k, M, G, T (exit code 4)")
      ->option_text("BYTES");
  app.add_flag("--dry-run", options->dry_run, "print peak bytes, and run nothing");
  app.add_flag("--json", options->json, "print a description as JSON");
  return [options] { return run(*options); };
}

}  // namespace

const Command kAttentionCommand{
    "attention", "Compute attention and its gradients by Q, K and V",
    "  loipe attention --inputs qkvg.safetensors --out grads.safetensors --causal\n"
    "  loipe attention --inputs qkvg.safetensors --out grads.safetensors --window 256 --dtype f32\n"
    "  loipe attention --inputs qkvg.safetensors --dry-run --json",
    declare};

}  // namespace loipe::cli
