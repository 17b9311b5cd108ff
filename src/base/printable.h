// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace loipe {

/// The longest message about a file's content.
inline constexpr std::size_t kLongestMessage = 1000;

/// The text as one line that is valid UTF-8 and safe on every terminal: control
/// characters (U+0000 to U+001F, U+007F to U+009F) and bytes that are no UTF-8 become
/// \n, \t or \xHH. Of a text that takes more than `limit` bytes so the beginning, then
/// "...". For messages that quote what a file holds.
std::string printable(std::string_view text, std::size_t limit = kLongestMessage);

}  // namespace loipe
