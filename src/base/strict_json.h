// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace loipe {

/// Why a text is refused as JSON.
struct JsonFault : std::runtime_error {
  JsonFault(const std::string& reason, std::string repeated = "", std::size_t at_depth = 0)
      : std::runtime_error(reason), repeated_key(std::move(repeated)), depth(at_depth) {}
  std::string repeated_key;  ///< the key that an object has twice, if that is the fault
  std::size_t depth;         ///< of that object; the outermost has 1
};

/// The value of a JSON text from outside. Unlike the library alone it refuses objects
/// with two equal keys, of which one would silently win, and more than `deepest` nested
/// brackets. Takes time and memory in proportion to the text.
nlohmann::json parse_strict_json(std::string_view text, std::size_t deepest);

}  // namespace loipe
