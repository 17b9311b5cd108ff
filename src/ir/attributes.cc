// SPDX-License-Identifier: Apache-2.0
#include "ir/attributes.h"

#include <algorithm>

#include "base/text.h"
#include "tensor/visit.h"

namespace loipe {

Attributes::Attributes(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) set(entry.first, entry.second);
}

void Attributes::set(std::string name, AttributeValue value) {
  auto place = std::lower_bound(entries_.begin(), entries_.end(), name,
                                [](const Entry& entry, const std::string& key) { return entry.first < key; });
  if (place != entries_.end() && place->first == name) place->second = std::move(value);
  else entries_.emplace(place, std::move(name), std::move(value));
}

const AttributeValue* Attributes::find(std::string_view name) const {
  for (const Entry& entry : entries_)
    if (entry.first == name) return &entry.second;
  return nullptr;
}

const AttributeValue& Attributes::get(std::string_view name) const {
  if (const AttributeValue* value = find(name)) return *value;
  throw UserError("attribute '" + std::string(name) + "' is missing");
}

template <class T>
const T& Attributes::get_as(std::string_view name, const char* kind) const {
  if (const T* value = std::get_if<T>(&get(name))) return *value;
  throw UserError("attribute '" + std::string(name) + "' must be " + kind);
}

std::int64_t Attributes::integer(std::string_view name) const {
  return get_as<std::int64_t>(name, "an integer");
}
double Attributes::number(std::string_view name) const {
  if (const auto* integer = std::get_if<std::int64_t>(&get(name))) return static_cast<double>(*integer);
  return get_as<double>(name, "a number");
}
const Integers& Attributes::integers(std::string_view name) const {
  return get_as<Integers>(name, "a list of integers");
}
DType Attributes::dtype(std::string_view name) const { return get_as<DType>(name, "a dtype"); }
const std::string& Attributes::text(std::string_view name) const {
  return get_as<std::string>(name, "a text in quotes");
}
const Tensor& Attributes::tensor(std::string_view name) const {
  return *get_as<std::shared_ptr<const Tensor>>(name, "a tensor");
}

namespace {

std::string print_element(float v) { return format_float(v); }
std::string print_element(double v) { return format_double(v); }
template <class T>
std::string print_element(T v) {
  return std::to_string(v);
}

std::string print_tensor(const Tensor& tensor) {
  std::string text = to_string(tensor.type()) + "(";
  visit_dtype(tensor.dtype(), [&]<class T>(T) {
    const std::span<const T> elements = tensor.elements<T>();
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (i) text += ",";
      text += print_element(elements[i]);
    }
  });
  return text + ")";
}

std::string print_value(const AttributeValue& value) {
  struct Printer {
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return format_double(v); }
    std::string operator()(const Integers& v) const { return to_string(std::span(v)); }
    std::string operator()(DType v) const { return std::string(to_string(v)); }
    std::string operator()(const std::string& v) const { return quote(v); }
    std::string operator()(const std::shared_ptr<const Tensor>& v) const { return print_tensor(*v); }
  };
  return std::visit(Printer{}, value);
}

}  // namespace

std::string Attributes::print() const {
  std::string text;
  for (const Entry& entry : entries_) {
    if (!text.empty()) text += ", ";
    text += entry.first + "=" + print_value(entry.second);
  }
  return text;
}

}  // namespace loipe
