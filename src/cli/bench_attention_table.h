// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cli/json.h"
#include "driver/bench_attention.h"

namespace loipe::cli {

/// Options of `bench attention` alone, as text.
struct AttentionBenchTexts {
  std::optional<std::string> n, heads, head_sizes;
  bool is_causal = false;

  bool is_given() const { return n || heads || head_sizes || is_causal; }
};
void declare_attention_options(CLI::App& app, AttentionBenchTexts& texts);
/// Every length with every head size; UserError for what is no number.
std::vector<AttentionSize> attention_sizes(const AttentionBenchTexts& texts);

std::string attention_text(const AttentionBenchResult& result);
Json attention_json(const AttentionBenchResult& result);

}  // namespace loipe::cli
