// SPDX-License-Identifier: Apache-2.0
#include "cli/approximation_options.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/table.h"

namespace loipe::cli {

namespace {

namespace approximate = attention::approximate;
using approximate::Method, approximate::Settings;

/// JSON has no infinity and no NaN.
Json finite(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

Json interval_json(const MeasuredError& error) {
  if (std::isnan(error.value)) return nullptr;
  return Json::array({error.value, error.low, error.high});
}

std::string short_number(double number) {
  if (!std::isfinite(number)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", number);
  return text;
}

std::string_view name_of(AttentionMethod method) { return name_of(static_cast<Method>(method)); }

/// "degree 2 hermite (153)", "64 + 128".
std::string parameters(const AttentionHeadReport& head) {
  std::string text;
  if (head.forward == AttentionMethod::almost_linear) {
    text = "degree " + std::to_string(head.degree) + " " +
           std::string(name_of(static_cast<approximate::CoefficientKind>(head.coefficients))) + " (" +
           std::to_string(head.features) + " features)";
  } else if (head.clusters > 0) {
    text = std::to_string(head.clusters) + " clusters + " +
           (head.exact_keys > 0 ? std::to_string(head.exact_keys) + " keys" : "keys by a pilot");
  }
  if (head.near > 0) text += ", near " + std::to_string(head.near);
  return text;
}

std::string method_text(const AttentionHeadReport& head) {
  if (head.forward == head.backward) return std::string(name_of(head.forward));
  return std::string(name_of(head.forward)) + ", " + std::string(name_of(head.backward)) + " backward";
}

/// The largest of one member over all heads; NaN where one is not measured.
template <class Member>
MeasuredError worst(const std::vector<AttentionHeadReport>& heads, Member member) {
  MeasuredError result{0, 0, 0};
  for (const AttentionHeadReport& head : heads) {
    const MeasuredError& error = head.*member;
    if (std::isnan(error.value)) return error;
    if (error.value >= result.value) result = error;
  }
  return result;
}

template <class Member>
double largest(const std::vector<AttentionHeadReport>& heads, Member member) {
  double result = 0;
  for (const AttentionHeadReport& head : heads) result = std::max(result, head.*member);
  return result;
}

/// Why there is no rigorous bound for all heads.
std::string why_vacuous(const std::vector<AttentionHeadReport>& heads) {
  double logits = 0;
  for (const AttentionHeadReport& head : heads) {
    if (head.backward == AttentionMethod::clustered)
      return "errors of clusters are bounded by nothing but the spread of their keys, which is too large";
    if (head.backward == AttentionMethod::almost_linear && !std::isfinite(head.bound_dk))
      logits = std::max(logits, head.logit_bound);
  }
  return "no bound is below the result itself: norms of queries and keys allow logits up to " +
         short_number(logits) + ", where a polynomial of this degree may be far from exp";
}

bool is_exact(const AttentionHeadReport& head) {
  return head.forward == AttentionMethod::exact && head.backward == AttentionMethod::exact;
}

}  // namespace

void ApproximationOptions::declare(CLI::App& app, bool has_window) {
  app.add_option("--method", method_,
                 "exact (default), almost-linear, clustered, or auto: per head by its logits")
      ->option_text("METHOD");
  app.add_option("--tolerance", tolerance_, "relative error that auto and clustered may have (default 1e-2)")
      ->option_text("T");
  app.add_option("--degree", degree_, "of the polynomial of almost-linear (default: by the logits; even)")
      ->option_text("G");
  app.add_option("--coefficients", coefficients_,
                 "of the polynomial: auto (default), taylor, hermite, minimax")
      ->option_text("KIND");
  app.add_option("--clusters", clusters_, "of the keys of a head, for clustered (default: by the error)")
      ->option_text("C");
  app.add_option("--exact-keys", exact_keys_, "keys that a query sees one by one, for clustered")
      ->option_text("K");
  app.add_option("--forward", forward_, "of clustered: exact (default) or clustered")->option_text("HOW");
  app.add_option("--gradient", gradient_,
                 "of almost-linear: consistent (default, that of the approximate network, coefficients held) "
                 "or paper (exact formulas, "
                 "approximate weights)")
      ->option_text("WHICH");
  if (has_window)
    app.add_option("--window", near_, "pairs nearer than W are exact within almost-linear")->option_text("W");
  app.add_flag("--no-audit", has_no_audit_, "measure no errors (almost-linear, clustered)");
}

Settings ApproximationOptions::settings() const {
  Settings settings;
  settings.method = approximate::parse_method("--method", method_);
  const bool is_linear = settings.method == Method::almost_linear,
             is_clustered = settings.method == Method::clustered,
             is_auto = settings.method == Method::automatic;
  const auto expect_meaning = [&](const auto& option, const char* name, bool has_meaning) {
    if (option && !has_meaning)
      throw UserError(std::string(name) + " " + shortened(*option) + ": has no meaning with --method " +
                      method_);
  };
  expect_meaning(degree_, "--degree", is_linear || is_auto);
  expect_meaning(coefficients_, "--coefficients", is_linear || is_auto);
  expect_meaning(near_, "--window", is_linear || is_auto);
  expect_meaning(gradient_, "--gradient", is_linear || is_auto);
  expect_meaning(clusters_, "--clusters", is_clustered || is_auto);
  expect_meaning(exact_keys_, "--exact-keys", is_clustered || is_auto);
  expect_meaning(forward_, "--forward", is_clustered || is_auto);
  if (tolerance_) settings.tolerance = parse_number("--tolerance", *tolerance_);
  if (!(settings.tolerance > 0))
    throw UserError("--tolerance " + shortened(*tolerance_) + ": expected a positive number");
  if (degree_)
    settings.degree = static_cast<int>(std::min<std::int64_t>(parse_integer("--degree", *degree_, 1), 1000));
  if (coefficients_)
    settings.coefficients = approximate::parse_coefficient_kind("--coefficients", *coefficients_);
  if (near_) settings.near = parse_integer("--window", *near_, 1);
  if (clusters_) settings.clusters = parse_integer("--clusters", *clusters_, 1);
  if (exact_keys_) settings.exact_keys = parse_integer("--exact-keys", *exact_keys_, 1);
  if (forward_)
    settings.is_forward_clustered =
        parse_choice("--forward", *forward_, {"exact", "clustered"}) == "clustered";
  if (gradient_)
    settings.has_paper_gradient = parse_choice("--gradient", *gradient_, {"consistent", "paper"}) == "paper";
  settings.is_audited = !has_no_audit_;
  check_settings("--", settings);
  return settings;
}

void warn_of(const Settings& settings, Terminal& terminal) {
  if (settings.degree % 2 == 1)
    terminal.note(
        "--degree " + std::to_string(settings.degree) +
        " is odd: its polynomial is negative for small logits, so that weights and denominators may be; "
        "even degrees are positive everywhere");
}

void warn_of_errors(const std::vector<AttentionHeadReport>& heads, const Settings& settings,
                    Terminal& terminal) {
  std::size_t missed = 0, without_numbers = 0;
  std::int64_t guarded = 0;
  for (const AttentionHeadReport& head : heads) {
    guarded += head.guarded_rows;
    const double worst = std::max({head.o.value, head.dq.value, head.dk.value, head.dv.value});
    if (settings.is_audited && (std::isnan(head.o.value) || std::isnan(head.dq.value))) ++without_numbers;
    else if (worst > settings.tolerance) ++missed;
  }
  const std::string of_all = " of " + std::to_string(heads.size()) + " heads of keys";
  if (guarded > 0)
    terminal.note(
        std::to_string(guarded) +
        " rows have a sum of weights that is not positive, as the polynomial is negative on some of their "
        "logits: results are of no use; expected an even degree, --coefficients taylor, or --method auto");
  if (without_numbers > 0)
    terminal.note(
        "the audit of " + std::to_string(without_numbers) + of_all +
        " found no error that is a number: results may not be finite; expected smaller logits, or --method "
        "exact");
  if (missed > 0)
    terminal.note("the audit of " + std::to_string(missed) + of_all +
                  " found errors above the tolerance of " + format_double(settings.tolerance) +
                  (settings.method == Method::automatic ? ", after samples of the forward pass had met it"
                                                        : "; --method auto keeps to it"));
}

Json head_json(const AttentionHeadReport& head) {
  Json json;
  json["forward"] = name_of(head.forward);
  json["backward"] = name_of(head.backward);
  const bool is_linear = head.forward == AttentionMethod::almost_linear;
  json["degree"] = is_linear ? Json(head.degree) : Json(nullptr);
  json["coefficients"] =
      is_linear ? Json(name_of(static_cast<approximate::CoefficientKind>(head.coefficients))) : Json(nullptr);
  json["features"] = is_linear ? Json(head.features) : Json(nullptr);
  json["rank"] = is_linear ? Json(head.rank) : Json(nullptr);
  json["window"] = head.near > 0 ? Json(head.near) : Json(nullptr);
  json["clusters"] = head.clusters > 0 ? Json(head.clusters) : Json(nullptr);
  json["exact_keys"] = head.exact_keys > 0 ? Json(head.exact_keys) : Json(nullptr);
  json["sampled_queries"] = head.sampled > 0 ? Json(head.sampled) : Json(nullptr);
  json["logit_spread"] = finite(head.logit_spread);
  json["logit_bound"] = finite(head.logit_bound);
  json["largest_logit"] = finite(head.largest_logit);
  json["effective_rank"] = finite(head.effective_rank);
  json["predicted_error"] = finite(head.predicted_error);
  json["predicted_flops"] = finite(head.predicted_flops);
  json["predicted_bytes"] = finite(head.predicted_bytes);
  json["reason"] = head.reason;
  json["escalations"] = head.escalations;
  json["guarded_rows"] = head.guarded_rows;
  json["certificate"] = certificate_json({head}, 0);
  return json;
}

Json certificate_json(const std::vector<AttentionHeadReport>& heads, double tolerance) {
  Json json;
  bool all_exact = true;
  for (const AttentionHeadReport& head : heads) all_exact = all_exact && is_exact(head);
  if (all_exact) return {{"kind", "exact"}, {"bound", 0.0}};
  const std::array<std::pair<const char*, MeasuredError AttentionHeadReport::*>, 4> measured{
      {{"O", &AttentionHeadReport::o},
       {"dQ", &AttentionHeadReport::dq},
       {"dK", &AttentionHeadReport::dk},
       {"dV", &AttentionHeadReport::dv}}};
  const std::array<std::pair<const char*, double AttentionHeadReport::*>, 4> bounds{
      {{"O", &AttentionHeadReport::bound_o},
       {"dQ", &AttentionHeadReport::bound_dq},
       {"dK", &AttentionHeadReport::bound_dk},
       {"dV", &AttentionHeadReport::bound_dv}}};
  Json bound, errors;
  bool is_bounded = true, is_measured = true, is_met = true;
  for (const auto& [name, member] : bounds) {
    bound[name] = finite(largest(heads, member));
    is_bounded = is_bounded && !bound[name].is_null();
  }
  for (const auto& [name, member] : measured) {
    const MeasuredError error = worst(heads, member);
    errors[name] = interval_json(error);
    is_measured = is_measured && !std::isnan(error.value);
    is_met = is_met && error.value <= tolerance;
  }
  json["kind"] = is_bounded ? "rigorous" : is_measured ? "measured" : "none";
  json["bound"] = std::move(bound);
  if (!is_bounded && is_measured) json["bound_is_vacuous"] = why_vacuous(heads);
  json["measured"] = std::move(errors);
  for (const AttentionHeadReport& head : heads)
    if (!is_exact(head)) json["column_audit"] = head.column_audit;
  if (tolerance > 0) {
    json["tolerance"] = tolerance;
    json["met"] = is_measured ? Json(is_met) : Json(nullptr);
  }
  return json;
}

std::string heads_text(const std::vector<AttentionHeadReport>& heads, const std::string& indent) {
  Table table({"head", "method", "parameters", "spread", "largest", "rank", "MiB", "predicted", "O", "dQ",
               "dK", "dV", "why"});
  for (std::size_t column : {1U, 2U, 12U}) table.align_left(column);
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const AttentionHeadReport& head = heads[h];
    table.add({std::to_string(h), method_text(head), parameters(head), short_number(head.logit_spread),
               short_number(head.largest_logit),
               std::to_string(static_cast<std::int64_t>(head.effective_rank)),
               short_number(head.predicted_bytes / (1 << 20)), short_number(head.predicted_error),
               short_number(head.o.value), short_number(head.dq.value), short_number(head.dk.value),
               short_number(head.dv.value), head.reason});
  }
  std::string text, line;
  for (char c : table.text()) {
    if (line.empty()) line = indent;
    line += c;
    if (c == '\n') text += line, line.clear();
  }
  return text + line;
}

}  // namespace loipe::cli
