// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loipe::c {

/// offset + sum of stride * variable: where along an axis, or in memory, an element lies.
class Affine {
 public:
  Affine(std::int64_t offset = 0) : offset_(offset) {}
  static Affine of(const std::string& variable) {
    Affine result;
    result.terms_.emplace_back(variable, 1);
    return result;
  }

  /// Adds factor * other.
  void add(const Affine& other, std::int64_t factor = 1);
  std::int64_t stride(std::string_view variable) const;
  /// As C; a sum is in no parentheses.
  std::string text() const;

 private:
  std::int64_t offset_;
  std::vector<std::pair<std::string, std::int64_t>> terms_;  ///< no variable twice, no stride 0
};

/// One index per axis.
using Indices = std::vector<Affine>;

/// The position of the element in a row-major tensor of that shape.
Affine position_of(std::span<const std::int64_t> shape, const Indices& at);

}  // namespace loipe::c
