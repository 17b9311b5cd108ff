// SPDX-License-Identifier: Apache-2.0
#include "backends/c/affine.h"

#include <loipe/tensor.h>

#include <algorithm>

namespace loipe::c {

void Affine::add(const Affine& other, std::int64_t factor) {
  offset_ += factor * other.offset_;
  for (const auto& [variable, stride] : other.terms_) {
    const auto place = std::ranges::find(terms_, variable, [](const auto& term) { return term.first; });
    if (place == terms_.end()) terms_.emplace_back(variable, factor * stride);
    else place->second += factor * stride;
  }
  std::erase_if(terms_, [](const auto& term) { return term.second == 0; });
}

std::int64_t Affine::stride(std::string_view variable) const {
  for (const auto& [name, stride] : terms_)
    if (name == variable) return stride;
  return 0;
}

std::string Affine::text() const {
  std::string text;
  for (const auto& [variable, stride] : terms_) {
    if (text.empty()) text = stride < 0 ? "-" : "";
    else text += stride < 0 ? " - " : " + ";
    const std::int64_t size = stride < 0 ? -stride : stride;
    text += size == 1 ? variable : std::to_string(size) + " * " + variable;
  }
  if (text.empty()) return std::to_string(offset_);
  if (offset_ == 0) return text;
  return text + (offset_ < 0 ? " - " : " + ") + std::to_string(offset_ < 0 ? -offset_ : offset_);
}

Affine position_of(std::span<const std::int64_t> shape, const Indices& at) {
  Affine result;
  std::int64_t stride = element_count(shape);
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    stride /= std::max<std::int64_t>(shape[axis], 1);
    result.add(at[axis], stride);
  }
  return result;
}

}  // namespace loipe::c
