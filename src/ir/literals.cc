// SPDX-License-Identifier: Apache-2.0
#include "ir/literals.h"

#include <charconv>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <type_traits>
#include <vector>

#include "tensor/visit.h"

namespace loipe {

namespace {

template <class T>
std::string number_range() {
  return "does not fit " + std::string(to_string(dtype_of<T>()));
}

/// An integer, or also a real number when T is floating.
template <class T>
T parse_number(Lexer& lexer) {
  const Token token = lexer.peek();
  const bool is_number = token.kind == TokenKind::integer || token.kind == TokenKind::real;
  if constexpr (std::is_floating_point_v<T>) {
    const bool is_special = token.spelling == "inf" || token.spelling == "nan";
    if (!is_number && !is_special) lexer.fail_expected("a number");
  } else if (token.kind != TokenKind::integer) {
    lexer.fail_expected("an integer");
  }
  T value{};
  const char* end = token.spelling.data() + token.spelling.size();
  const auto [stop, status] = std::from_chars(token.spelling.data(), end, value);
  if (status == std::errc::result_out_of_range)
    lexer.fail(token, "number " + std::string(token.spelling.substr(0, 40)) + " " + number_range<T>());
  if (status != std::errc() || stop != end) lexer.fail_expected("a number");
  lexer.take();
  return value;
}

template <>
bool parse_number<bool>(Lexer& lexer) {
  const Token token = lexer.peek();
  if (token.spelling != "0" && token.spelling != "1") lexer.fail_expected("0 or 1");
  return lexer.take().spelling == "1";
}

Integers parse_integers(Lexer& lexer) {
  Integers result;
  lexer.expect('[');
  if (lexer.take_if(']')) return result;
  do result.push_back(parse_number<std::int64_t>(lexer));
  while (lexer.take_if(','));
  if (!lexer.take_if(']')) lexer.fail_expected("',' or ']'");
  return result;
}

DType parse_dtype_token(Lexer& lexer) {
  const Token token = lexer.expect(TokenKind::word, "a dtype");
  try {
    return parse_dtype(token.spelling);
  } catch (const UserError&) {
    lexer.fail(token, "expected a dtype (f32, f64, bool, i32 or i64), got '" +
                          std::string(token.spelling.substr(0, 40)) + "'");
  }
}

TensorType parse_type_after(DType dtype, const Token& first, Lexer& lexer) {
  TensorType type{dtype, parse_integers(lexer)};
  try {
    element_count(type.shape);
  } catch (const Error& error) {
    lexer.rethrow_at(first, error);
  }
  return type;
}

/// "(0.5,1.0)". The elements are counted as they come: a huge type in front of
/// few elements takes no memory.
Tensor parse_elements(TensorType type, const Token& first, Lexer& lexer) {
  const auto wanted = static_cast<std::size_t>(type.element_count());
  std::vector<std::byte> bytes;
  std::size_t count = 0;
  lexer.expect('(');
  if (!lexer.peek().is(')')) {
    visit_dtype(type.dtype, [&]<class T>(T) {
      do {
        const T element = parse_number<T>(lexer);
        const auto* begin = reinterpret_cast<const std::byte*>(&element);
        bytes.insert(bytes.end(), begin, begin + sizeof element);
        ++count;
      } while (lexer.take_if(','));
    });
  }
  if (!lexer.take_if(')')) lexer.fail_expected("',' or ')'");
  if (count != wanted)
    lexer.fail(first, to_string(type) + " wants " + std::to_string(wanted) + " elements, got " +
                          std::to_string(count));
  Tensor tensor(std::move(type));
  if (!bytes.empty()) std::memcpy(tensor.bytes().data(), bytes.data(), bytes.size());
  return tensor;
}

AttributeValue parse_attribute_value(Lexer& lexer) {
  const Token token = lexer.peek();
  if (token.is('[')) return parse_integers(lexer);
  switch (token.kind) {
    case TokenKind::integer: return parse_number<std::int64_t>(lexer);
    case TokenKind::real: return parse_number<double>(lexer);
    case TokenKind::text: return unquote(lexer, lexer.take());
    case TokenKind::word: break;
    default:
      lexer.fail_expected("an attribute value (a number, [integers], a dtype, a text in quotes or a tensor)");
  }
  if (token.spelling == "inf" || token.spelling == "nan") return parse_number<double>(lexer);
  const DType dtype = parse_dtype_token(lexer);
  if (!lexer.peek().is('[')) return dtype;
  return std::make_shared<const Tensor>(parse_elements(parse_type_after(dtype, token, lexer), token, lexer));
}

std::optional<unsigned> hexadecimal_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  return std::nullopt;
}

}  // namespace

TensorType parse_type(Lexer& lexer) {
  const Token first = lexer.peek();
  if (first.kind != TokenKind::word) lexer.fail_expected("a type such as f32[4,4]");
  return parse_type_after(parse_dtype_token(lexer), first, lexer);
}

Attributes parse_attributes(Lexer& lexer) {
  Attributes attributes;
  lexer.expect('{');
  if (lexer.take_if('}')) return attributes;
  do {
    const Token name = lexer.expect(TokenKind::word, "the name of an attribute");
    std::string key(name.spelling);
    if (attributes.has(key)) lexer.fail(name, "attribute '" + key + "' is given twice");
    lexer.expect('=');
    attributes.set(std::move(key), parse_attribute_value(lexer));
  } while (lexer.take_if(','));
  if (!lexer.take_if('}')) lexer.fail_expected("',' or '}'");
  return attributes;
}

std::string unquote(const Lexer& lexer, const Token& token) {
  std::string_view rest = token.spelling;
  rest.remove_prefix(rest.find('"') + 1);
  rest.remove_suffix(1);
  std::string text;
  while (!rest.empty()) {
    const char c = rest[0];
    const char escape = c == '\\' && rest.size() > 1 ? rest[1] : '\0';
    const auto high = escape == 'x' && rest.size() > 3 ? hexadecimal_digit(rest[2]) : std::nullopt;
    const auto low = high ? hexadecimal_digit(rest[3]) : std::nullopt;
    if (c != '\\') text += c;
    else if (escape == '"' || escape == '\\') text += escape;
    else if (escape == 'n') text += '\n';
    else if (escape == 't') text += '\t';
    else if (low) text += static_cast<char>(*high * 16 + *low);
    else lexer.fail(token, "a '\\' in a text is followed by none of \\ \" n t xHH (two digits 0-9a-f)");
    rest.remove_prefix(c != '\\' ? 1 : low ? 4 : 2);
  }
  return text;
}

}  // namespace loipe
