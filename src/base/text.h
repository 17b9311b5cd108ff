// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loipe {

/// The shortest decimal text that reads back as exactly this number; always with
/// a point, an exponent, "inf" or "nan", so that it cannot be read as an integer.
std::string format_double(double value);
/// The same for single precision: the shortest text that reads back as this float.
std::string format_float(float value);

/// The text between double quotes on one line: \" \\ \n \t, and \xHH for other
/// control characters. All further bytes, hence UTF-8, stay as they are.
std::string quote(std::string_view text);

/// The text, or its first `limit` bytes (whole UTF-8 characters) and "...".
std::string shortened(std::string_view text, std::size_t limit = 60);

std::string join(std::span<const std::string> parts, std::string_view separator);

/// The candidate nearest to `name` by edit distance, or "" when none is near
/// (or the name is so long that it cannot be a misspelt one).
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

/// " (did you mean 'x'?)", or "" when no candidate is near.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

/// "12,345,678".
std::string with_thousands(std::int64_t value);

}  // namespace loipe
