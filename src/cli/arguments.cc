// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "driver/pipeline.h"

namespace loipe::cli {

namespace {

/// "--threads 'x': expected ..."
[[noreturn]] void fail(std::string_view option, std::string_view text, const std::string& expected) {
  throw UserError(std::string(option) + " " + (text.empty() ? "''" : shortened(text)) + ": expected " +
                  expected);
}

}  // namespace

std::int64_t parse_integer(std::string_view option, std::string_view text, std::int64_t minimum) {
  const std::string expected = "a whole number of " + std::to_string(minimum) + " or more";
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < minimum)
    fail(option, text, expected);
  return number;
}

double parse_number(std::string_view option, std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(number) ||
      std::abs(number) > 1e6)
    fail(option, text, "a number between -1e6 and 1e6");
  return number;
}

double parse_seconds(std::string_view option, std::string_view text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || !(seconds > 0) || seconds > 1e6)
    fail(option, text, "seconds above 0, at most a million, such as 10 or 0.5");
  return seconds;
}

int parse_threads(std::string_view text) {
  constexpr int kMost = 1024;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0 || number > kMost)
    fail("--threads", text, "a whole number from 0 (all cores) to " + std::to_string(kMost));
  return number;
}

std::size_t parse_bytes(std::string_view option, std::string_view text) {
  const char* expected = "a number of bytes above 0, such as 4096, 512M or 2G";
  constexpr std::string_view kSuffixes = "kMGT";
  std::size_t number = 0, factor = 1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc{} || number == 0 || suffix.size() > 1) fail(option, text, expected);
  if (!suffix.empty()) {
    const char letter = suffix[0] == 'K' ? 'k' : suffix[0];
    const std::size_t power = kSuffixes.find(letter);
    if (power == std::string_view::npos) fail(option, text, expected);
    factor = std::size_t{1} << (10 * (power + 1));
  }
  if (number > std::numeric_limits<std::size_t>::max() / factor) fail(option, text, expected);
  return number * factor;
}

std::string parse_choice(std::string_view option, const std::string& text,
                         const std::vector<std::string>& names) {
  if (std::ranges::find(names, text) == names.end())
    fail(option, text, join(names, ", ") + did_you_mean(text, names));
  return text;
}

DType parse_floating(std::string_view option, const std::string& text) {
  return parse_dtype(parse_choice(option, text, {"f32", "f64"}));
}

std::vector<std::string> split_list(std::string_view option, std::string_view text) {
  std::vector<std::string> parts;
  for (std::string_view rest = text;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (comma == 0) fail(option, text, "names separated by commas");
    parts.emplace_back(rest.substr(0, comma));
    if (comma == rest.size()) return parts;
    rest.remove_prefix(comma + 1);
  }
}

void declare_disable(CLI::App& app, std::optional<std::string>& names) {
  app.add_option("--disable", names, "passes to leave out, separated by commas (see info --json)")
      ->option_text("PASSES");
}

std::vector<std::string> parse_disable(const std::optional<std::string>& names) {
  if (!names) return {};
  std::vector<std::string> list = split_list("--disable", *names);
  check_pass_names(list);
  return list;
}

void SubjectOptions::declare(CLI::App& app) {
  app.add_option("subject", name_, "a built-in task ('loipe tasks' lists them) or a program file")
      ->option_text("TASK|PROGRAM.loipe");
  app.add_option("--scale", scale_, "size of Encoder, EncoderDecoder and Perceptron (default 1)")
      ->option_text("S");
  app.add_option("--batch", batch_, "number of examples (default: one, without a batch axis)")
      ->option_text("B");
}

SubjectRequest SubjectOptions::request() const {
  if (name_.empty())
    throw UserError(
        "TASK is missing: expected the name of a task ('loipe tasks' lists them) or a .loipe file");
  SubjectRequest request{name_, {}, {}};
  if (scale_) request.scale = parse_integer("--scale", *scale_, 1);
  if (batch_) request.batch = parse_integer("--batch", *batch_, 1);
  return request;
}

const std::string& required(std::string_view option, const std::optional<std::string>& value) {
  if (!value) throw UserError("option " + std::string(option) + " is missing; see --help");
  return *value;
}

}  // namespace loipe::cli
