// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <charconv>

#include "jacobian/coordinate.h"

namespace loipe {

// Labels 0..51 are letters; others are written _52, _53, ...
std::string label_name(Label label) {
  if (label < 26) return std::string(1, static_cast<char>('a' + label));
  if (label < 52) return std::string(1, static_cast<char>('A' + (label - 26)));
  return "_" + std::to_string(label);
}

namespace {

std::string print_coordinate(const Coordinate& coordinate) {
  if (coordinate.index) {
    const IndexArray& index = *coordinate.index;
    std::string text = index.is_dynamic() ? "#" + std::to_string(index.value.index) : "table";
    text += "[";
    for (std::size_t i = 0; i < index.labels.size(); ++i)
      text += (i ? "," : "") + label_name(index.labels[i]);
    return text + "]";
  }
  std::string text;
  for (const Stride& s : coordinate.strides) {
    if (!text.empty()) text += "+";
    if (s.stride != 1) text += std::to_string(s.stride) + "*";
    text += label_name(s.label);
  }
  if (text.empty()) return std::to_string(coordinate.offset);
  if (coordinate.offset != 0) text += "+" + std::to_string(coordinate.offset);
  return text;
}

/// Reads the textual form of a list of coordinates.
class CoordinateParser {
 public:
  explicit CoordinateParser(std::string_view text) : text_(text) {}

  std::vector<Coordinate> list() {
    std::vector<Coordinate> result;
    skip_space();
    if (at_end()) return result;
    do result.push_back(coordinate());
    while (accept(','));
    if (!at_end()) fail("a comma or the end");
    return result;
  }

 private:
  bool at_end() const { return place_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[place_]; }
  void skip_space() {
    while (peek() == ' ') ++place_;
  }
  bool accept(char c) {
    skip_space();
    if (peek() != c) return false;
    ++place_;
    skip_space();
    return true;
  }
  [[noreturn]] void fail(const std::string& expected) const {
    throw UserError("coordinates \"" + std::string(text_) + "\": expected " + expected + " at position " +
                    std::to_string(place_ + 1));
  }

  std::int64_t integer() {
    std::int64_t value = 0;
    auto [end, status] = std::from_chars(text_.data() + place_, text_.data() + text_.size(), value);
    if (status != std::errc()) fail("an integer");
    place_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  Label label() {
    const char c = peek();
    if (c >= 'a' && c <= 'z') return ++place_, static_cast<Label>(c - 'a');
    if (c >= 'A' && c <= 'Z') return ++place_, static_cast<Label>(c - 'A' + 26);
    if (c != '_') fail("a label");
    ++place_;
    const std::int64_t number = integer();
    if (number < 52 || number > 65535) fail("a label");
    return static_cast<Label>(number);
  }

  Coordinate coordinate() {
    skip_space();
    Coordinate result;
    if (accept('#')) {
      result.index = index_array();
      return result;
    }
    do {
      if (std::isdigit(static_cast<unsigned char>(peek())) || peek() == '-') {
        const std::int64_t number = integer();
        if (accept('*')) add_affine(result, Coordinate::of(label()), number);
        else result.offset += number;
      } else {
        add_affine(result, Coordinate::of(label()), 1);
      }
    } while (accept('+'));
    return result;
  }

  IndexArray index_array() {
    IndexArray index;
    index.value = Value{static_cast<std::uint32_t>(integer())};
    if (!accept('[')) fail("'['");
    if (accept(']')) return index;
    do {
      skip_space();
      index.labels.push_back(label());
    } while (accept(','));
    if (!accept(']')) fail("']'");
    return index;
  }

  std::string_view text_;
  std::size_t place_ = 0;
};

}  // namespace

std::string print_coordinates(std::span<const Coordinate> coordinates) {
  std::string text;
  for (std::size_t i = 0; i < coordinates.size(); ++i)
    text += (i ? ", " : "") + print_coordinate(coordinates[i]);
  return text;
}

std::vector<Coordinate> parse_coordinates(std::string_view text) { return CoordinateParser(text).list(); }

}  // namespace loipe
