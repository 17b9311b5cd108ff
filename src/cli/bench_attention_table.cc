// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_attention_table.h"

#include <cstdio>

#include "cli/arguments.h"
#include "cli/bench_table.h"
#include "cli/table.h"

namespace loipe::cli {

namespace {

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// About as many numbers for each head size as published comparisons have.
std::int64_t usual_heads(std::int64_t head_size) { return head_size == 32 ? 12 : head_size == 16 ? 4 : 8; }

}  // namespace

void declare_attention_options(CLI::App& app, AttentionBenchTexts& texts) {
  app.add_option("--n", texts.n, "attention: lengths, separated by commas (default 4096)")->option_text("N");
  app.add_option("--heads", texts.heads, "attention: heads (default 8; 12 of size 32, 4 of size 16)")
      ->option_text("H");
  app.add_option("--head-size", texts.head_sizes, "attention: head sizes (default 64,32,16,8)")
      ->option_text("D");
  app.add_flag("--causal", texts.is_causal, "attention: causal (default: each token looks at all)");
}

std::vector<AttentionSize> attention_sizes(const AttentionBenchTexts& texts) {
  std::vector<AttentionSize> sizes;
  for (const std::string& n : split_list("--n", texts.n.value_or("4096")))
    for (const std::string& d : split_list("--head-size", texts.head_sizes.value_or("64,32,16,8"))) {
      const std::int64_t head_size = parse_integer("--head-size", d, 1);
      const std::int64_t heads =
          texts.heads ? parse_integer("--heads", *texts.heads, 1) : usual_heads(head_size);
      sizes.push_back({parse_integer("--n", n, 1), heads, head_size});
    }
  return sizes;
}

std::string attention_text(const AttentionBenchResult& result) {
  Table table({"tokens", "heads", "head size", "forward ms", "GFLOP/s", "backward ms", "GFLOP/s", "of peak",
               "peak MB", "max error"});
  for (const AttentionBenchRow& row : result.rows)
    table.add({std::to_string(row.size.n), std::to_string(row.size.heads), std::to_string(row.size.head_size),
               formatted("%.2f", row.forward_ms), formatted("%.1f", row.forward_gflops),
               formatted("%.2f", row.backward_ms), formatted("%.1f", row.backward_gflops),
               formatted("%.0f %%", 100 * row.fraction_of_peak),
               formatted("%.1f", static_cast<double>(row.peak_bytes) / (1 << 20)),
               formatted("%.1e", row.max_rel_error)});
  return "Exact attention and its gradients, " + std::string(result.is_causal ? "causal" : "not causal") +
         ", " + std::string(to_string(result.dtype)) + "\n" + result.machine.cpu + " (" +
         result.machine.simd + "), " + std::to_string(result.threads) + " threads; FMA loop " +
         formatted("%.1f", result.speed.fma_gflops) + " GFLOP/s\n\n" + table.text() +
         "\nOperations: 4 n^2 d forward, 10 n^2 d backward for each head, half of it when causal. Error: of "
         "sampled rows\nand columns against f64, over the largest entry.\n";
}

Json attention_json(const AttentionBenchResult& result) {
  Json json;
  json["schema"] = kJsonSchema;
  json["task"] = "attention";
  json["causal"] = result.is_causal;
  json["dtype"] = std::string(to_string(result.dtype));
  json["threads"] = result.threads;
  json["machine"] = machine_json(result.machine, result.speed);
  json["rows"] = Json::array();
  for (const AttentionBenchRow& row : result.rows)
    json["rows"].push_back({{"n", row.size.n},
                            {"heads", row.size.heads},
                            {"head_size", row.size.head_size},
                            {"forward_ms", row.forward_ms},
                            {"backward_ms", row.backward_ms},
                            {"forward_gflops", row.forward_gflops},
                            {"backward_gflops", row.backward_gflops},
                            {"fraction_of_peak", row.fraction_of_peak},
                            {"peak_bytes", row.peak_bytes},
                            {"max_rel_error", row.max_rel_error},
                            {"repetitions", row.repetitions}});
  return json;
}

}  // namespace loipe::cli
