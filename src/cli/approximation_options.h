// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "attention/approximate/settings.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "driver/attention_reports.h"

namespace loipe::cli {

/// --method and what it may be told, of the commands that compute attention.
class ApproximationOptions {
 public:
  /// --window too, unless the command has it with a meaning of its own.
  void declare(CLI::App& app, bool has_window);
  /// UserError for a number outside its range, and for an option that means nothing to the method.
  attention::approximate::Settings settings() const;
  bool is_exact() const { return method_ == "exact"; }

 private:
  std::string method_ = "exact";
  std::optional<std::string> tolerance_, degree_, coefficients_, near_, clusters_, exact_keys_, forward_,
      gradient_;
  bool has_no_audit_ = false;
};

/// Lines on stderr for what is allowed and seldom wanted: odd degrees.
void warn_of(const attention::approximate::Settings& settings, Terminal& terminal);

/// A line on stderr where audits found errors above the tolerance, which methods that were asked for by name
/// go on with.
void warn_of_errors(const std::vector<AttentionHeadReport>& heads,
                    const attention::approximate::Settings& settings, Terminal& terminal);

/// One head: choice, parameters, statistics, predictions, measured errors and bounds.
Json head_json(const AttentionHeadReport& head);
/// Of all heads together: kind ("exact", "rigorous", "measured"), the worst measured errors with their
/// intervals and the worst bounds, the tolerance and whether it is met (null: not measured).
Json certificate_json(const std::vector<AttentionHeadReport>& heads, double tolerance);
/// A table, a line for each head.
std::string heads_text(const std::vector<AttentionHeadReport>& heads, const std::string& indent);

}  // namespace loipe::cli
