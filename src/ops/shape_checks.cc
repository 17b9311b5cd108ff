// SPDX-License-Identifier: Apache-2.0
#include "ops/shape_checks.h"

#include <algorithm>

#include "base/text.h"

namespace loipe::ops {

void expect_attributes(const InferContext& context, std::initializer_list<std::string_view> allowed) {
  for (const auto& [name, value] : context.attributes.entries()) {
    if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
    const std::vector<std::string> names(allowed.begin(), allowed.end());
    const std::string known = names.empty() ? "it has none" : "its attributes are " + join(names, ", ");
    throw UserError("it has no attribute '" + name + "'" + did_you_mean(name, names) + "; " + known);
  }
}

std::string quoted(std::string_view attribute, const Integers& numbers) {
  return std::string(attribute) + "=" + to_string(std::span(numbers));
}

void expect_axes(std::string_view attribute, const Integers& axes, std::int64_t rank) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= rank)
      throw UserError(quoted(attribute, axes) + " names axis " + std::to_string(axes[i]) +
                      ", but the operand has rank " + std::to_string(rank));
    if (std::find(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]) !=
        axes.begin() + static_cast<std::ptrdiff_t>(i))
      throw UserError(quoted(attribute, axes) + " names axis " + std::to_string(axes[i]) + " twice");
  }
}

void expect_length(std::string_view attribute, const Integers& numbers, std::int64_t rank) {
  if (static_cast<std::int64_t>(numbers.size()) != rank)
    throw UserError(quoted(attribute, numbers) + " has " + std::to_string(numbers.size()) +
                    " entries, expected one for each of the operand's " + std::to_string(rank) + " axes");
}

Integers integers_or(const Attributes& attributes, std::string_view name, Integers otherwise) {
  return attributes.has(name) ? attributes.integers(name) : std::move(otherwise);
}

}  // namespace loipe::ops
