// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <limits>

#include "attention/almost_linear/almost_linear.h"
#include "base/text.h"
#include "cli/approximation_options.h"
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
  std::optional<std::string> inputs, out, scale, window, dtype, threads, memory_limit;
  std::string repetitions = "1";
  ApproximationOptions approximation;
  bool is_causal = false;
  bool dry_run = false;
  bool json = false;
};

AttentionOverrides overrides_of(const Options& options) {
  AttentionOverrides overrides;
  overrides.is_causal = options.is_causal;
  if (options.scale) overrides.scale = parse_number("--scale", *options.scale);
  overrides.settings = options.approximation.settings();
  overrides.repetitions = parse_integer("--repetitions", options.repetitions, 1);
  // A window of the mask makes exact attention linear already, so it means exact pairs to the others.
  if (options.window && options.approximation.is_exact())
    overrides.window = parse_integer("--window", *options.window, 1);
  else if (options.window) overrides.settings.near = parse_integer("--window", *options.window, 1);
  if (options.dtype) overrides.dtype = parse_floating("--dtype", *options.dtype);
  return overrides;
}

/// What a run, or its plan alone, has to tell.
struct Outcome {
  std::optional<double> seconds;    ///< absent when nothing ran
  std::optional<double> predicted;  ///< seconds, of a plan
  std::vector<AttentionHeadReport> heads;
};

std::string method_of(const AttentionRequest& request) {
  return request.polynomial.empty() ? std::string(name_of(request.settings.method)) : "almost-linear";
}

/// What all heads have in common; null else, or where it is 0 for all.
template <class Member>
Json common(const std::vector<AttentionHeadReport>& heads, Member member) {
  if (heads.empty() || heads[0].*member == 0) return nullptr;
  for (const AttentionHeadReport& head : heads)
    if (head.*member != heads[0].*member) return nullptr;
  return heads[0].*member;
}

void add_choice(Json& json, const AttentionRequest& request, const std::vector<AttentionHeadReport>& heads) {
  if (!request.polynomial.empty()) {
    const int degree = static_cast<int>(request.polynomial.size()) - 1;
    json["degree"] = degree;
    json["features"] = attention::almost_linear::feature_count(request.shape.head_size, degree);
  } else {
    json["degree"] = common(heads, &AttentionHeadReport::degree);
    json["features"] = common(heads, &AttentionHeadReport::features);
  }
  json["clusters"] = common(heads, &AttentionHeadReport::clusters);
  json["exact_keys"] = common(heads, &AttentionHeadReport::exact_keys);
  const std::int64_t window = request.window != 0 ? request.window : request.settings.near;
  json["window"] = window == 0 ? Json(nullptr) : Json(window);
}

/// A bound of 0: every weight is computed, rounding aside. A polynomial that is given is the function itself.
Json description_json(const AttentionRequest& request, const Outcome& outcome) {
  const attention::Shape& s = request.shape;
  Json json;
  json["schema"] = kJsonSchema;
  json["method"] = method_of(request);
  json["n"] = s.queries;
  json["keys"] = s.keys;
  json["heads"] = s.heads;
  json["kv_heads"] = s.kv_heads;
  json["head_size"] = s.head_size;
  json["value_size"] = s.value_size;
  json["causal"] = request.is_causal;
  json["scale"] = request.scale;
  json["dtype"] = std::string(to_string(request.dtype));
  add_choice(json, request, outcome.heads);
  json["threads"] = request.threads;
  json["seconds"] = outcome.seconds ? Json(*outcome.seconds) : Json(nullptr);
  if (outcome.predicted) json["predicted_seconds"] = *outcome.predicted;
  json["peak_bytes"] = attention_peak_bytes(request);
  json["certificate"] = certificate_json(outcome.heads, request.settings.tolerance);
  if (!outcome.heads.empty()) {
    json["plan"] = Json::array();
    for (const AttentionHeadReport& head : outcome.heads) json["plan"].push_back(head_json(head));
  }
  return json;
}

std::string description_text(const AttentionRequest& request, const Outcome& outcome) {
  const attention::Shape& s = request.shape;
  char text[240];
  std::snprintf(text, sizeof text, ": %lld heads, %lld queries, %lld keys, head size %lld, %s, peak %.1f MiB",
                static_cast<long long>(s.heads), static_cast<long long>(s.queries),
                static_cast<long long>(s.keys), static_cast<long long>(s.head_size),
                std::string(to_string(request.dtype)).c_str(),
                static_cast<double>(attention_peak_bytes(request)) / (1 << 20));
  std::string line = method_of(request) + text;
  if (outcome.seconds) {
    std::snprintf(text, sizeof text, ", %.4f s", *outcome.seconds);
    line += text;
  }
  if (outcome.predicted) {
    std::snprintf(text, sizeof text, ", about %.2g s", *outcome.predicted);
    line += text;
  }
  line += "\n";
  return outcome.heads.empty() ? line : line + heads_text(outcome.heads, "  ");
}

void write(const std::string& path, AttentionGradients& results) {
  NamedTensors tensors;
  tensors.emplace_back("O", std::move(results.o));
  tensors.emplace_back("lse", std::move(results.lse));
  tensors.emplace_back("dQ", std::move(results.dq));
  tensors.emplace_back("dK", std::move(results.dk));
  tensors.emplace_back("dV", std::move(results.dv));
  if (results.denominator) tensors.emplace_back("denominator", std::move(*results.denominator));
  const UninterruptedSection section;
  write_safetensors(path, tensors);
}

/// Exact attention needs no look at the data.
Outcome planned(const AttentionFile& file) {
  const AttentionRequest& request = file.request();
  if (!request.polynomial.empty() || request.settings.method == attention::approximate::Method::exact)
    return {};
  std::vector<AttentionHeadReport> heads = planned_attention(request, file.load());
  double flops = 0;
  for (const AttentionHeadReport& head : heads) flops += head.predicted_flops;
  // What the kernels of attention reach of the FMA peak, about.
  constexpr double kOfPeak = 0.5;
  const double rate = kOfPeak * 1e9 * measure_speed(request.dtype, request.threads).fma_gflops;
  return {{}, flops / rate, std::move(heads)};
}

/// A polynomial in the file is the function itself: nothing is left to choose but its gradient.
void check_polynomial(const AttentionRequest& request, const std::string& path) {
  if (request.polynomial.empty()) return;
  attention::approximate::Settings settings = request.settings;
  settings.has_paper_gradient = false, settings.is_audited = true;
  const attention::approximate::Settings exact{},
      linear{.method = attention::approximate::Method::almost_linear};
  if (settings != exact && settings != linear)
    throw UserError(
        "file " + quote(path) +
        " holds \"coef\", a polynomial in place of exp: of the options of approximations only --gradient "
        "has a meaning; expected --method almost-linear or none");
}

int run(const Options& options, Terminal& terminal) {
  const AttentionOverrides overrides = overrides_of(options);
  warn_of(overrides.settings, terminal);
  const int threads = thread_count(options.threads ? parse_threads(*options.threads) : 0);
  const std::size_t limit = options.memory_limit ? parse_bytes("--memory-limit", *options.memory_limit)
                                                 : std::numeric_limits<std::size_t>::max();
  const std::string& path = required("--inputs", options.inputs);
  if (!options.dry_run) check_writable(required("--out", options.out));
  AttentionFile file(path, overrides, threads);
  file.keep_within(limit);
  check_polynomial(file.request(), path);
  const std::size_t peak = attention_peak_bytes(file.request());
  if (peak > limit)
    throw ResourceError("--memory-limit " + *options.memory_limit + ": attention of this size needs " +
                        with_thousands(static_cast<std::int64_t>(peak)) +
                        " bytes, expected a limit of at least that");
  Outcome outcome;
  if (options.dry_run) {
    outcome = planned(file);
  } else {
    AttentionGradients results = attention_gradients(file.request(), file.load());
    outcome = {results.forward_seconds + results.backward_seconds, {}, std::move(results.reports)};
    write(*options.out, results);
    warn_of_errors(outcome.heads, overrides.settings, terminal);
  }
  if (options.json) print_json(description_json(file.request(), outcome));
  else print(description_text(file.request(), outcome));
  return 0;
}

Action declare(CLI::App& app, Terminal& terminal) {
  auto options = std::make_shared<Options>();
  app.add_option("--inputs", options->inputs,
                 "safetensors file with Q, K, V, G, maybe key_mask, and metadata causal, scale, window")
      ->option_text("FILE");
  app.add_option("--out", options->out, "safetensors file for O, lse, dQ, dK, dV")->option_text("FILE");
  app.add_flag("--causal", options->is_causal, "query i looks at keys 0 to i (default: as in the file)");
  app.add_option("--scale", options->scale,
                 "of the logits (default: that of the file, else 1 / sqrt(head size))")
      ->option_text("C");
  app.add_option(
         "--window", options->window,
         "query i looks at keys nearer than W (default: as in the file); with another method than exact: "
         "pairs nearer than W are exact")
      ->option_text("W");
  options->approximation.declare(app, false);
  app.add_option("--dtype", options->dtype, "f32 or f64 (default: that of the inputs)")->option_text("DTYPE");
  app.add_option("--threads", options->threads, "threads of one run (default 0: all cores)")
      ->option_text("N");
  app.add_option("--memory-limit", options->memory_limit,
                 "refuse what needs more bytes; suffixes k, M, G, T (exit code 4)")
      ->option_text("BYTES");
  app.add_option("--repetitions", options->repetitions, "runs, of which the median time is told (default 1)")
      ->option_text("R");
  app.add_flag("--dry-run", options->dry_run, "print peak bytes and the plan of each head, and run nothing");
  app.add_flag("--json", options->json, "print a description as JSON");
  return [options, &terminal] { return run(*options, terminal); };
}

}  // namespace

const Command kAttentionCommand{
    "attention", "Compute attention and its gradients by Q, K and V",
    "  loipe attention --inputs qkvg.safetensors --out grads.safetensors --causal\n"
    "  loipe attention --inputs qkvg.safetensors --out grads.safetensors --window 256 --dtype f32\n"
    "  loipe attention --inputs qkvg.safetensors --out grads.safetensors --method auto --tolerance 1e-2\n"
    "  loipe attention --inputs qkvg.safetensors --dry-run --json",
    declare};

}  // namespace loipe::cli
