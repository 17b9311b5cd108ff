// SPDX-License-Identifier: Apache-2.0
#include "ir/parser.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "ir/builder.h"
#include "ir/lexer.h"
#include "ir/literals.h"

namespace loipe {

namespace {

class ProgramParser {
 public:
  explicit ProgramParser(std::string_view text) : lexer_(text) {}

  Program parse() {
    lexer_.expect_word("program");
    builder_ = Builder(parse_program_name());
    parse_arguments();
    lexer_.expect('{');
    while (lexer_.peek().kind == TokenKind::value) parse_node();
    if (!lexer_.peek().is_word("return")) lexer_.fail_expected("a value such as %1, or 'return'");
    lexer_.take();
    std::vector<Value> outputs;
    if (lexer_.peek().kind == TokenKind::value) outputs = parse_uses();
    lexer_.expect('}');
    if (lexer_.peek().kind != TokenKind::end) lexer_.fail_expected("the end of the text");
    return builder_.finish(std::move(outputs));
  }

 private:
  /// Calls f; its errors get the token's place in front.
  template <class F>
  decltype(auto) at(const Token& token, F&& f) const {
    try {
      return f();
    } catch (const Error& error) {
      lexer_.rethrow_at(token, error);
    }
  }

  std::string parse_program_name() {
    const Token token = lexer_.take();
    if (token.kind == TokenKind::word) return std::string(token.spelling);
    if (token.kind == TokenKind::text) return unquote(lexer_, token);
    lexer_.fail(token, "expected the name of the program, got '" + shortened(token.spelling) + "'");
  }

  void parse_arguments() {
    lexer_.expect('(');
    if (lexer_.take_if(')')) return;
    do {
      const Token name = lexer_.expect(TokenKind::value, "an argument such as %x");
      lexer_.expect(':');
      TensorType type = parse_type(lexer_);
      define(name, at(name, [&] { return builder_.argument(plain_name(name), std::move(type)); }));
    } while (lexer_.take_if(','));
    if (!lexer_.take_if(')')) lexer_.fail_expected("',' or ')'");
  }

  void parse_node() {
    const Token name = lexer_.take();
    lexer_.expect('=');
    const Token op_name = lexer_.expect(TokenKind::word, "the name of an op");
    const OpDef& op = at(op_name, [&]() -> const OpDef& { return find_op(op_name.spelling); });
    if (&op == &argument_op())
      lexer_.fail(op_name, "arguments are declared in the first line of the program");
    std::vector<Value> operands;
    if (lexer_.take_if('(') && !lexer_.take_if(')')) {
      operands = parse_uses();
      if (!lexer_.take_if(')')) lexer_.fail_expected("',' or ')'");
    }
    const Attributes attributes = lexer_.peek().is('{') ? parse_attributes(lexer_) : Attributes();
    // Not Builder::constant, which would join equal constants and so renumber them.
    const Value value = at(op_name, [&] { return builder_.emit(op, operands, attributes); });
    if (lexer_.take_if(':')) check_type(value);
    define(name, value);
  }

  void check_type(Value value) {
    const Token token = lexer_.peek();
    const TensorType written = parse_type(lexer_);
    if (written != builder_.type(value))
      lexer_.fail(token, "the type is " + to_string(builder_.type(value)) + ", not " + to_string(written));
  }

  std::vector<Value> parse_uses() {
    std::vector<Value> values;
    do {
      const Token name = lexer_.expect(TokenKind::value, "a value such as %1");
      const auto place = values_.find(key(name));
      if (place == values_.end()) fail_undefined(name);
      values.push_back(place->second);
    } while (lexer_.take_if(','));
    return values;
  }

  void define(const Token& name, Value value) {
    if (!values_.emplace(key(name), value).second)
      lexer_.fail(name, "value " + shortened(name.spelling) + " is already defined");
  }

  [[noreturn]] void fail_undefined(const Token& name) const {
    constexpr std::size_t kMostCandidates = 10'000;
    std::vector<std::string> candidates;
    if (values_.size() <= kMostCandidates)
      for (const auto& [known, value] : values_) candidates.push_back("%" + known);
    std::ranges::sort(candidates);  // a hash table has no order to rely on
    lexer_.fail(name, "value " + shortened(name.spelling) + " is not defined before this use" +
                          did_you_mean(name.spelling, candidates));
  }

  bool is_quoted(const Token& name) const { return name.spelling[1] == '"'; }

  std::string plain_name(const Token& name) const {
    return is_quoted(name) ? unquote(lexer_, name) : std::string(name.spelling.substr(1));
  }

  /// What a value is known by: %"x" is %x, but %"1" and %"c1", the arguments of
  /// these names, differ from %1 and %c1.
  std::string key(const Token& name) const {
    std::string plain = plain_name(name);
    return is_quoted(name) && !is_bare_argument_name(plain) ? quote(plain) : plain;
  }

  Lexer lexer_;
  Builder builder_;
  std::unordered_map<std::string, Value> values_;
};

}  // namespace

Program program_from_text(std::string_view text) { return ProgramParser(text).parse(); }

Program read_program(const std::filesystem::path& path) {
  const std::string text = read_text_file(path);
  const auto in_file = [&](const Error& error) {
    return "file " + quote(path.string()) + ", " + error.what();
  };
  try {
    return program_from_text(text);
  } catch (const ResourceError& error) {
    throw ResourceError(in_file(error));
  } catch (const UserError& error) {
    throw FileError(in_file(error));
  } catch (const Unsupported& error) {
    throw Unsupported(in_file(error));
  }
}

}  // namespace loipe
