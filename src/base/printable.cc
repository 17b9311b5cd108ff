// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <cstdint>

namespace loipe {

namespace {

/// Bytes of the UTF-8 character that the text begins with; 0 if it begins with none.
/// Overlong forms, surrogates and numbers above U+10FFFF are none.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return 0;
  std::uint32_t number = lead & (0xffu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    number = number << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = number >= 0xd800 && number <= 0xdfff;
  return number >= kLeast[size] && number <= 0x10ffff && !is_surrogate ? size : 0;
}

/// U+0080 to U+009F, which some terminals obey like escape sequences, are 0xc2 and that byte.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  return first < 0x20 || first == 0x7f || (first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0);
}

std::string escaped(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  if (bytes == "\n") return "\\n";
  if (bytes == "\t") return "\\t";
  std::string result;
  for (char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    ((result += "\\x") += kDigits[byte >> 4]) += kDigits[byte & 15];
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
  std::string result;
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const std::string_view character = text.substr(0, size == 0 ? 1 : size);
    const std::string shown =
        size == 0 || is_control(character) ? escaped(character) : std::string(character);
    if (result.size() + shown.size() > limit) return result + "...";
    result += shown;
    text.remove_prefix(character.size());
  }
  return result;
}

}  // namespace loipe
