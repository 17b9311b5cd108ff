// SPDX-License-Identifier: Apache-2.0
#include "attention/approximate/settings.h"

#include <loipe/error.h>

#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "attention/almost_linear/almost_linear.h"
#include "attention/polynomial/polynomial.h"
#include "base/text.h"

namespace loipe::attention::approximate {

namespace {

const std::vector<std::string> kMethods{"exact", "auto", "almost-linear", "clustered"};
const std::vector<std::string> kKinds{"auto", "taylor", "hermite", "minimax"};

std::size_t place_of(std::string_view what, std::string_view text, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == text) return i;
  throw UserError(std::string(what) + " is '" + shortened(text) + "'" + did_you_mean(text, names) +
                  ": expected " + join(names, ", "));
}

[[noreturn]] void refuse(std::string_view key, std::string_view text, std::string_view expected) {
  throw UserError("setting '" + shortened(key) + "' of approximate attention is '" + shortened(text) +
                  "', expected " + std::string(expected));
}

template <class Number>
Number number_of(std::string_view key, std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) refuse(key, text, "a number");
  return value;
}

bool is_choice(std::string_view key, std::string_view text, std::string_view no, std::string_view yes) {
  if (text != no && text != yes) refuse(key, text, std::string(no) + " or " + std::string(yes));
  return text == yes;
}

/// One setting: how it is written if it differs from the default, and how it is read.
struct Field {
  std::string_view key;
  std::string (*write)(const Settings&);
  void (*read)(Settings&, std::string_view key, std::string_view text);
};

constexpr std::array kFields{
    Field{"tolerance", [](const Settings& s) { return format_double(s.tolerance); },
          [](Settings& s, std::string_view key, std::string_view text) {
            s.tolerance = number_of<double>(key, text);
          }},
    Field{"degree", [](const Settings& s) { return std::to_string(s.degree); },
          [](Settings& s, std::string_view key, std::string_view text) {
            s.degree = number_of<int>(key, text);
          }},
    Field{"coefficients", [](const Settings& s) { return std::string(name_of(s.coefficients)); },
          [](Settings& s, std::string_view key, std::string_view text) {
            s.coefficients = parse_coefficient_kind(key, text);
          }},
    Field{"near", [](const Settings& s) { return std::to_string(s.near); },
          [](Settings& s, std::string_view key, std::string_view text) {
            s.near = number_of<std::int64_t>(key, text);
          }},
    Field{"clusters", [](const Settings& s) { return std::to_string(s.clusters); },
          [](Settings& s, std::string_view key, std::string_view text) {
            s.clusters = number_of<std::int64_t>(key, text);
          }},
    Field{"exact_keys", [](const Settings& s) { return std::to_string(s.exact_keys); },
          [](Settings& s, std::string_view key, std::string_view text) {
            s.exact_keys = number_of<std::int64_t>(key, text);
          }},
    Field{"memory", [](const Settings& s) { return std::to_string(s.memory); },
          [](Settings& s, std::string_view key, std::string_view text) {
            s.memory = number_of<std::int64_t>(key, text);
          }},
    Field{"forward",
          [](const Settings& s) { return std::string(s.is_forward_clustered ? "clustered" : "exact"); },
          [](Settings& s, std::string_view key, std::string_view text) {
            s.is_forward_clustered = is_choice(key, text, "exact", "clustered");
          }},
    Field{"gradient",
          [](const Settings& s) { return std::string(s.has_paper_gradient ? "paper" : "consistent"); },
          [](Settings& s, std::string_view key, std::string_view text) {
            s.has_paper_gradient = is_choice(key, text, "consistent", "paper");
          }},
    Field{"audit", [](const Settings& s) { return std::string(s.is_audited ? "on" : "off"); },
          [](Settings& s, std::string_view key, std::string_view text) {
            s.is_audited = is_choice(key, text, "off", "on");
          }},
};

const Field& field_of(std::string_view key) {
  for (const Field& field : kFields)
    if (field.key == key) return field;
  std::vector<std::string> keys;
  for (const Field& field : kFields) keys.emplace_back(field.key);
  throw UserError("approximate attention has no setting '" + shortened(key) + "'" + did_you_mean(key, keys) +
                  ": expected " + join(keys, ", "));
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

Method parse_method(std::string_view what, std::string_view text) {
  return static_cast<Method>(place_of(what, text, kMethods));
}
CoefficientKind parse_coefficient_kind(std::string_view what, std::string_view text) {
  return static_cast<CoefficientKind>(place_of(what, text, kKinds));
}

std::string to_text(const Settings& settings) {
  Settings defaults;
  defaults.method = settings.method;
  std::string text(name_of(settings.method));
  for (const Field& field : kFields)
    if (std::string value = field.write(settings); value != field.write(defaults))
      text += " " + std::string(field.key) + "=" + value;
  return text;
}

Settings parse_settings(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.empty())
    throw UserError("the settings of approximate attention are empty, expected a method: " +
                    join(kMethods, ", "));
  Settings settings;
  settings.method = parse_method("the method of attention", words[0]);
  for (std::string_view word : std::span(words).subspan(1)) {
    const std::size_t equals = word.find('=');
    if (equals == word.npos) refuse(word, "", "key=value");
    const std::string_view key = word.substr(0, equals);
    field_of(key).read(settings, key, word.substr(equals + 1));
  }
  check_settings("approximate attention: ", settings);
  return settings;
}

void check_settings(std::string_view what, const Settings& settings) {
  const auto expect = [&](bool holds, std::string_view name, const std::string& value,
                          const std::string& expected) {
    if (!holds)
      throw UserError(std::string(what) + std::string(name) + " " + value + ": expected " + expected);
  };
  expect(settings.tolerance > 0 && std::isfinite(settings.tolerance), "tolerance",
         format_double(settings.tolerance), "a positive number");
  expect(settings.degree >= 0 && settings.degree <= polynomial::kMaxDegree, "degree",
         std::to_string(settings.degree), "1 to " + std::to_string(polynomial::kMaxDegree));
  for (const auto& [name, value] :
       {std::pair{"near", settings.near}, std::pair{"clusters", settings.clusters},
        std::pair{"exact-keys", settings.exact_keys}, std::pair{"memory", settings.memory}})
    expect(value >= 0 && value <= (std::int64_t{1} << 40), name, std::to_string(value),
           "at least 1 and at most 2^40");
}

void check_settings(const Settings& settings, const Shape& shape) {
  if (settings.clusters > shape.keys && shape.keys > 0)
    throw UserError("approximate attention: " + std::to_string(settings.clusters) + " clusters of " +
                    std::to_string(shape.keys) + " keys, expected at most as many as keys");
  if (settings.degree == 0) return;
  constexpr std::int64_t kMostSums = std::int64_t{1} << 36;
  const std::int64_t features = almost_linear::feature_count(shape.head_size, settings.degree);
  if (features > kMostSums / (shape.value_size + 1))
    throw ResourceError("approximate attention: a polynomial of degree " + std::to_string(settings.degree) +
                        " has " + with_thousands(features) + " features for heads of size " +
                        std::to_string(shape.head_size) +
                        ", whose sums no memory holds; expected a lower degree or smaller heads");
}

}  // namespace loipe::attention::approximate
