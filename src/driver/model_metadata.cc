// SPDX-License-Identifier: Apache-2.0
#include "driver/model_metadata.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "tensor/visit.h"

namespace loipe {

namespace {

template <class T>
std::optional<T> parsed(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "[3,0,7]": where element `index` stands.
std::string position_text(std::int64_t index, const Shape& shape) {
  Shape position(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; index /= shape[axis])
    position[axis] = index % shape[axis];
  return to_string(position);
}

}  // namespace

const std::string* ModelMetadata::find(std::string_view key) const {
  const auto found = file_.metadata().find(key);
  return found == file_.metadata().end() ? nullptr : &found->second;
}

void ModelMetadata::refuse(std::string_view key, const std::string& expected) const {
  const std::string* value = find(key);
  throw UserError("the metadata of " + where_ + (value ? " have " : " lack ") + std::string(key) +
                  (value ? " = " + quote(shortened(*value)) : "") + ", expected " + expected);
}

std::string ModelMetadata::text(std::string_view key, const std::vector<std::string>& choices) const {
  const std::string* value = find(key);
  if (value == nullptr) refuse(key, "one of " + join(choices, ", "));
  if (std::ranges::find(choices, *value) == choices.end())
    refuse(key, "one of " + join(choices, ", ") + did_you_mean(*value, choices));
  return *value;
}

std::string ModelMetadata::text_or(std::string_view key, const std::string& otherwise,
                                   const std::vector<std::string>& choices) const {
  return has(key) ? text(key, choices) : otherwise;
}

std::int64_t ModelMetadata::integer(std::string_view key, std::int64_t least) const {
  const std::string* value = find(key);
  const auto number = value == nullptr ? std::nullopt : parsed<std::int64_t>(*value);
  if (!number || *number < least) refuse(key, "a whole number, at least " + std::to_string(least));
  return *number;
}

std::int64_t ModelMetadata::integer_or(std::string_view key, std::int64_t otherwise,
                                       std::int64_t least) const {
  return has(key) ? integer(key, least) : otherwise;
}

bool ModelMetadata::flag_or(std::string_view key, bool otherwise) const {
  const std::string* value = find(key);
  if (value == nullptr) return otherwise;
  if (*value == "1" || *value == "true" || *value == "True") return true;
  if (*value == "0" || *value == "false" || *value == "False") return false;
  refuse(key, "0 or 1");
}

std::optional<double> ModelMetadata::number(std::string_view key) const {
  const std::string* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = parsed<double>(*value);
  if (!number || !std::isfinite(*number)) refuse(key, "a finite number");
  return number;
}

void check_scale(double scale, DType dtype) {
  const bool is_finite =
      dtype == DType::f32 ? std::abs(scale) <= std::numeric_limits<float>::max() : std::isfinite(scale);
  if (!is_finite)
    throw UserError("scale is " + format_double(scale) + ", which is infinite in " +
                    std::string(to_string(dtype)) + "; expected a finite number");
}

void check_finite(const std::string& where, const std::string& name, const Tensor& tensor) {
  if (!is_floating(tensor.dtype())) return;
  visit_floating(tensor.dtype(), [&]<class T>(T) {
    const std::span<const T> elements = tensor.elements<T>();
    const auto bad = std::ranges::find_if(elements, [](T x) { return !std::isfinite(x); });
    if (bad == elements.end()) return;
    throw UserError("tensor " + quote(name) + " of " + where + " has " +
                    (std::isnan(*bad) ? "NaN"
                     : *bad > 0       ? "inf"
                                      : "-inf") +
                    " at " + position_text(bad - elements.begin(), tensor.shape()) +
                    ", expected finite numbers");
  });
}

}  // namespace loipe
