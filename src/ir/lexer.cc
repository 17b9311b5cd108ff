// SPDX-License-Identifier: Apache-2.0
#include "ir/lexer.h"

#include <algorithm>

#include "base/printable.h"
#include "base/text.h"

namespace loipe {

namespace {

constexpr std::size_t kLongestWord = 255;
constexpr std::string_view kSymbols = "(){}[],:=";

// Not std::isalpha: what a program means must not depend on the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word_character(char c) { return is_letter(c) || is_digit(c) || c == '.'; }

TokenKind number_kind(std::string_view spelling) {
  if (spelling.starts_with('-')) spelling.remove_prefix(1);
  return !spelling.empty() && std::ranges::all_of(spelling, is_digit) ? TokenKind::integer : TokenKind::real;
}

std::string describe(const Token& token) {
  return token.kind == TokenKind::end ? "the end of the text" : "'" + shortened(token.spelling, 40) + "'";
}

}  // namespace

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= kLongestWord && is_letter(text[0]) &&
         std::ranges::all_of(text, is_word_character);
}

bool is_bare_argument_name(std::string_view name) {
  const bool is_constant = name.size() > 1 && name[0] == 'c' && std::ranges::all_of(name.substr(1), is_digit);
  return is_word(name) && !is_constant;
}

Token Lexer::take() {
  const Token token = next_;
  advance();
  return token;
}

bool Lexer::take_if(char symbol) {
  if (!next_.is(symbol)) return false;
  advance();
  return true;
}

Token Lexer::expect(TokenKind kind, std::string_view what) {
  if (next_.kind != kind) fail_expected(what);
  return take();
}

void Lexer::expect(char symbol) {
  if (!take_if(symbol)) fail_expected(std::string("'") + symbol + "'");
}

void Lexer::expect_word(std::string_view word) {
  if (!next_.is_word(word)) fail_expected("'" + std::string(word) + "'");
  advance();
}

void Lexer::fail_expected(std::string_view what) const {
  fail(next_, "expected " + std::string(what) + ", got " + describe(next_));
}

void Lexer::fail(const Token& at, const std::string& message) const {
  throw UserError(printable(place(at.offset) + ": " + message));
}

void Lexer::rethrow_at(const Token& at, const Error& error) const {
  const std::string message = printable(place(at.offset) + ": " + error.what());
  switch (error.code()) {
    case ErrorCode::unsupported: throw Unsupported(message);
    case ErrorCode::resource_limit: throw ResourceError(message);
    case ErrorCode::internal: throw;
    default: throw UserError(message);
  }
}

/// Found only when there is an error, so that lexing does not count lines.
std::string Lexer::place(std::size_t offset) const {
  const std::string_view before = source_.substr(0, offset);
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::string_view in_line = before.substr(before.rfind('\n') + 1);
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  const auto column =
      1 + static_cast<std::ptrdiff_t>(in_line.size()) - std::ranges::count_if(in_line, continues);
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

void Lexer::skip_blanks() {
  while (position_ < source_.size()) {
    const char c = source_[position_];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++position_;
    } else if (c == '#' || source_.substr(position_, 2) == "//") {
      position_ = std::min(source_.find('\n', position_), source_.size());
    } else {
      return;
    }
  }
}

void Lexer::advance() {
  skip_blanks();
  next_ = {TokenKind::end, position_, {}};
  if (position_ == source_.size()) return;
  const char c = source_[position_];
  const char following = position_ + 1 < source_.size() ? source_[position_ + 1] : '\0';
  std::size_t end = position_ + 1;
  if (kSymbols.find(c) != std::string_view::npos) {
    next_.kind = TokenKind::symbol;
  } else if (is_letter(c)) {
    next_.kind = TokenKind::word;
    end = word_end(end);
  } else if (c == '"') {
    next_.kind = TokenKind::text;
    end = quoted_end(end);
  } else if (c == '%' && (is_word_character(following) || following == '"')) {
    next_.kind = TokenKind::value;
    end = following == '"' ? quoted_end(end + 1) : word_end(end);
  } else if (is_digit(c) || (c == '-' && (is_digit(following) || is_letter(following)))) {
    end = number_end(end);
    next_.kind = number_kind(source_.substr(position_, end - position_));
  } else {
    fail(next_, "unexpected character " + quote(std::string_view(&c, 1)));
  }
  next_.spelling = source_.substr(position_, end - position_);
  position_ = end;
}

std::size_t Lexer::word_end(std::size_t position) const {
  while (position < source_.size() && is_word_character(source_[position])) ++position;
  const std::size_t length = position - position_ - (source_[position_] == '%' ? 1 : 0);
  if (length > kLongestWord) fail(next_, "a name of " + std::to_string(length) + " characters needs quotes");
  return position;
}

std::size_t Lexer::number_end(std::size_t position) const {
  const auto is_exponent_sign = [this](std::size_t at) {
    return (source_[at] == '+' || source_[at] == '-') && (source_[at - 1] == 'e' || source_[at - 1] == 'E');
  };
  while (position < source_.size() && (is_word_character(source_[position]) || is_exponent_sign(position)))
    ++position;
  return position;
}

std::size_t Lexer::quoted_end(std::size_t position) const {
  for (; position < source_.size() && source_[position] != '\n'; ++position) {
    if (source_[position] == '"') return position + 1;
    if (source_[position] == '\\') ++position;
  }
  fail(next_, "a text in quotes does not end on its line");
}

}  // namespace loipe
