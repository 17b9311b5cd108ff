// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace loipe {

using Integers = std::vector<std::int64_t>;

/// One compile-time parameter of a node.
using AttributeValue =
    std::variant<std::int64_t, double, Integers, DType, std::string, std::shared_ptr<const Tensor>>;

/// The compile-time parameters of a node by name, sorted by name.
class Attributes {
 public:
  using Entry = std::pair<std::string, AttributeValue>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries);

  void set(std::string name, AttributeValue value);
  bool has(std::string_view name) const { return find(name) != nullptr; }

  // Each throws UserError when the attribute is missing or of another kind; an
  // integer is a number too.
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const Integers& integers(std::string_view name) const;
  DType dtype(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const Tensor& tensor(std::string_view name) const;

  const std::vector<Entry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }

  /// "axes=[1], y=3": the textual form. Tensors are printed whole, floating-point
  /// numbers so that they read back exactly.
  std::string print() const;

  /// The same names with the same values, numbers bit by bit but for NaN, which equals
  /// itself: so equal attributes have one text.
  bool operator==(const Attributes& other) const;
  std::size_t hash() const;

 private:
  const AttributeValue* find(std::string_view name) const;
  const AttributeValue& get(std::string_view name) const;
  template <class T>
  const T& get_as(std::string_view name, const char* kind) const;

  std::vector<Entry> entries_;
};

}  // namespace loipe
