// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/error.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace loipe {

/// Whether the text can stand in a program without quotes: a letter or '_',
/// then letters, digits, '_' and '.', 255 characters at most.
bool is_word(std::string_view text);
/// Whether the argument of this name is written %name: a word, but not c1, c2, ...,
/// which are constants. Others are written %"name".
bool is_bare_argument_name(std::string_view name);

enum class TokenKind : std::uint8_t {
  end,
  word,     // dot_general
  value,    // %x, %"any text"
  integer,  // -3
  real,     // 0.5, 1e-3, -inf
  text,     // "any text"
  symbol,   // one of ( ) { } [ ] , : =
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::size_t offset = 0;
  std::string_view spelling;  ///< as in the source

  bool is(char symbol) const { return kind == TokenKind::symbol && spelling[0] == symbol; }
  bool is_word(std::string_view word) const { return kind == TokenKind::word && spelling == word; }
};

/// Cuts the textual form of a program into tokens, one ahead. Newlines are
/// blanks; '#' and '//' begin comments. The source must outlive the lexer. Every
/// mistake is a UserError that begins with line and column.
class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) { advance(); }

  const Token& peek() const { return next_; }
  Token take();
  bool take_if(char symbol);
  Token expect(TokenKind kind, std::string_view what);
  void expect(char symbol);
  void expect_word(std::string_view word);

  /// "line 3, column 12: expected WHAT, got 'spelling'".
  [[noreturn]] void fail_expected(std::string_view what) const;
  [[noreturn]] void fail(const Token& at, const std::string& message) const;
  /// Throws an error of the same class with the place in front.
  [[noreturn]] void rethrow_at(const Token& at, const Error& error) const;

 private:
  void advance();
  void skip_blanks();
  std::size_t word_end(std::size_t position) const;
  std::size_t number_end(std::size_t position) const;
  std::size_t quoted_end(std::size_t position) const;
  std::string place(std::size_t offset) const;

  std::string_view source_;
  std::size_t position_ = 0;
  Token next_;
};

}  // namespace loipe
