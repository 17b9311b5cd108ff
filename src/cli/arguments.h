// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/subject.h"

// Texts of the command line as values. Options are taken as text from the parser, so
// that every mistake gets the same kind of sentence: a UserError with the option.

namespace loipe::cli {

/// A whole decimal number, at least `minimum`.
std::int64_t parse_integer(std::string_view option, std::string_view text, std::int64_t minimum);
/// A finite decimal number.
double parse_number(std::string_view option, std::string_view text);
/// Seconds above 0, at most a million.
double parse_seconds(std::string_view option, std::string_view text);
/// 0 for all cores.
int parse_threads(std::string_view text);
/// "4096", "512M": bytes with a suffix k, M, G or T (powers of 1024).
std::size_t parse_bytes(std::string_view option, std::string_view text);
/// One of the names.
std::string parse_choice(std::string_view option, const std::string& text,
                         const std::vector<std::string>& names);
DType parse_floating(std::string_view option, const std::string& text);
/// "a,b" -> {"a", "b"}; UserError for an empty part.
std::vector<std::string> split_list(std::string_view option, std::string_view text);

/// TASK|PROGRAM, --scale and --batch.
class SubjectOptions {
 public:
  void declare(CLI::App& app);
  bool has_subject() const { return !name_.empty(); }
  bool has_scale() const { return scale_.has_value(); }
  bool has_batch() const { return batch_.has_value(); }
  SubjectRequest request() const;
  Subject subject() const { return Subject(request()); }

 private:
  std::string name_;
  std::optional<std::string> scale_, batch_;
};

/// --disable: names of passes.
void declare_disable(CLI::App& app, std::optional<std::string>& names);
/// Those names, all known; none when the option is not given.
std::vector<std::string> parse_disable(const std::optional<std::string>& names);

/// The value of an option that must be given.
const std::string& required(std::string_view option, const std::optional<std::string>& value);

}  // namespace loipe::cli
