// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "ir/op_def.h"

// What the shape rules of several ops check, with one wording.

namespace loipe::ops {

/// Refuses attributes that the op does not have: a mistyped optional one would
/// otherwise be ignored.
void expect_attributes(const InferContext& context, std::initializer_list<std::string_view> allowed);

/// "[2,3]: expected ..." from a list of integers, for messages.
std::string quoted(std::string_view attribute, const Integers& numbers);

/// Axes of a tensor of that rank: each in 0..rank-1 and none twice.
void expect_axes(std::string_view attribute, const Integers& axes, std::int64_t rank);

/// One number per axis.
void expect_length(std::string_view attribute, const Integers& numbers, std::int64_t rank);

/// The attribute, or `otherwise` when the node does not have it.
Integers integers_or(const Attributes& attributes, std::string_view name, Integers otherwise);

inline std::size_t index_of(std::int64_t axis) { return static_cast<std::size_t>(axis); }

}  // namespace loipe::ops
