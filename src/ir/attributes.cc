// SPDX-License-Identifier: Apache-2.0
#include "ir/attributes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <span>

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

namespace {

std::uint64_t bits_of(double number) {
  return std::isnan(number) ? ~std::uint64_t{0} : std::bit_cast<std::uint64_t>(number);
}

class Hasher {
 public:
  void add(std::uint64_t word) { hash_ = (hash_ ^ (hash_ >> 29) ^ word) * 0x9e3779b97f4a7c15u; }
  void add(std::string_view text) { add(std::hash<std::string_view>()(text)); }
  void add(std::span<const std::int64_t> numbers) {
    add(numbers.size());
    for (std::int64_t number : numbers) add(static_cast<std::uint64_t>(number));
  }

  void operator()(std::int64_t v) { add(static_cast<std::uint64_t>(v)); }
  void operator()(double v) { add(bits_of(v)); }
  void operator()(const Integers& v) { add(v); }
  void operator()(DType v) { add(static_cast<std::uint64_t>(v)); }
  void operator()(const std::string& v) { add(v); }
  /// A NaN has many bit patterns and one text, so tensors that have one hash by their type.
  void operator()(const std::shared_ptr<const Tensor>& v) {
    (*this)(v->dtype());
    add(v->shape());
    if (!has_nan(*v))
      add(std::string_view(reinterpret_cast<const char*>(v->bytes().data()), v->bytes().size()));
  }

  std::size_t result() const { return static_cast<std::size_t>(hash_ ^ (hash_ >> 32)); }

 private:
  static bool has_nan(const Tensor& tensor) {
    if (!is_floating(tensor.dtype())) return false;
    for (std::int64_t i = 0; i < tensor.element_count(); ++i)
      if (std::isnan(tensor.at(i))) return true;
    return false;
  }

  std::uint64_t hash_ = 1;
};

bool equal_tensors(const Tensor& a, const Tensor& b) {
  return a == b || (a.type() == b.type() && is_floating(a.dtype()) && print_tensor(a) == print_tensor(b));
}

bool equal_values(const AttributeValue& a, const AttributeValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<double>(&a)) return bits_of(*x) == bits_of(std::get<double>(b));
  if (const auto* x = std::get_if<std::shared_ptr<const Tensor>>(&a))
    return equal_tensors(**x, *std::get<std::shared_ptr<const Tensor>>(b));
  return a == b;
}

}  // namespace

bool Attributes::operator==(const Attributes& other) const {
  return std::ranges::equal(entries_, other.entries_, [](const Entry& a, const Entry& b) {
    return a.first == b.first && equal_values(a.second, b.second);
  });
}

std::size_t Attributes::hash() const {
  Hasher hasher;
  for (const Entry& entry : entries_) {
    hasher.add(entry.first);
    std::visit(hasher, entry.second);
  }
  return hasher.result();
}

std::string Attributes::print() const {
  std::string text;
  for (const Entry& entry : entries_) {
    if (!text.empty()) text += ", ";
    text += entry.first + "=" + print_value(entry.second);
  }
  return text;
}

}  // namespace loipe
