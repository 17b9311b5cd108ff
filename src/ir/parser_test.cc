// SPDX-License-Identifier: Apache-2.0
#include "ir/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "ir/op_def.h"
#include "ir/printer.h"

namespace loipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

TEST(Parser, TakesAnyNamesBlanksAndComments) {
  const Program program = program_from_text(R"(# a comment
program "free form" (%x : f64 [ 3 ],   // another
  %"1": f64[3])
{ %a.b_1 = neg ( %x ) {} # types may be left out
  %7=add(%a.b_1,%"1"):f64[3]  %"any text" = constant() {value = f64[] (2)}
  return %7, %"any text", %"x" })");
  EXPECT_EQ(program_to_text(program), R"(program "free form"(%x: f64[3], %"1": f64[3]) {
  %1 = neg(%x) : f64[3]
  %2 = add(%1, %"1") : f64[3]
  %c1 = constant {value=f64[](2.0)} : f64[]
  return %2, %c1, %x
}
)");
}

TEST(Parser, QuotedNamesAreArgumentsWhereTheyLookLikeNodes) {
  const Program program = program_from_text(
      "program f(%\"c1\": f32[], %\"1\": f32[]) {\n"
      "  %c1 = constant {value=f32[](0.5)}\n  %1 = mul(%c1, %\"c1\")\n  return %1, %\"1\"\n}");
  EXPECT_EQ(program.argument_name(0), "c1");
  EXPECT_EQ(program.outputs()[1], program.arguments()[1]);
  EXPECT_EQ(program.operands(Value{3})[1], program.arguments()[0]);
}

/// A program whose only node after the arguments is `node`.
std::string with_node(const std::string& node) {
  return "program f(%x: f32[3], %y: f32[3]) {\n  " + node + "\n  return %x\n}\n";
}

struct Mistake {
  const char* text;
  const char* part;
};

void expect_mistakes(std::span<const Mistake> mistakes, std::string (*wrap)(const std::string&)) {
  for (const auto& [text, part] : mistakes)
    EXPECT_THAT([&] { program_from_text(wrap(text)); },
                ThrowsMessage<UserError>(AllOf(StartsWith("line "), HasSubstr(part))))
        << text;
}

TEST(ParserErrors, OutsideNodes) {
  constexpr Mistake kMistakes[] = {
      {"", "line 1, column 1: expected 'program', got the end of the text"},
      {"pogram f() { return }", "line 1, column 1: expected 'program', got 'pogram'"},
      {"program (", "line 1, column 9: expected the name of the program, got '('"},
      {"program f", "expected '(', got the end of the text"},
      {"program f(x: f32[])", "column 11: expected an argument such as %x, got 'x'"},
      {"program f(%x f32[])", "expected ':', got 'f32'"},
      {"program f(%x: [])", "expected a type such as f32[4,4], got '['"},
      {"program f(%x: f16[])", "column 15: expected a dtype (f32, f64, bool, i32 or i64), got 'f16'"},
      {"program f(%x: f32)", "expected '[', got ')'"},
      {"program f(%x: f32[2;3])", "column 20: unexpected character \";\""},
      {"program f(%x: f32[2 3])", "expected ',' or ']', got '3'"},
      {"program f(%x: f32[2.0])", "expected an integer, got '2.0'"},
      {"program f(%x: f32[-1])", "column 15: shape [-1] has a negative extent"},
      {"program f(%x: f32[99999999999999999999])", "does not fit i64"},
      {"program f(%x: f32[4294967296,4294967296])",
       "line 1, column 15: shape [4294967296,4294967296] has more"},
      {"program f(%x: f32[], %x: f32[])", "column 22: two arguments are named 'x'"},
      {"program f(%x: f32[], %\"x\": f32[])", "two arguments are named 'x'"},
      {"program f(%x: f32[] %y: f32[])", "expected ',' or ')', got '%y'"},
      {"program f() {", "expected a value such as %1, or 'return', got the end"},
      {"program f() { }", "expected a value such as %1, or 'return', got '}'"},
      {"program f() { return %z }", "value %z is not defined before this use"},
      {"program f(%query: f32[]) { return %qury }", "did you mean '%query'?"},
      {"program f() { return\n\n  }  x", "line 3, column 6: expected the end of the text, got 'x'"},
      {"program f(%x: f32[]) { return %x,", "expected a value such as %1, got the end"},
      {"program f() { return ", "expected '}', got the end"},
      {"program f() # ) {\n", "expected '{', got the end"},
      {"program \"f\n\"() { return }", "line 1, column 9: a text in quotes does not end on its line"},
      {"program \"f\\q\"() { return }", "a '\\' in a text is followed by none of"},
      {"program \"f\\x0\"() { return }", "a '\\' in a text is followed by none of"},
      {"program \"løype\" ø", "line 1, column 17: unexpected character"},
      {"program % () { return }", "unexpected character \"%\""},
  };
  expect_mistakes(kMistakes, [](const std::string& text) { return text; });
}

TEST(ParserErrors, InNodes) {
  constexpr Mistake kMistakes[] = {
      {"%1 neg(%x)", "line 2, column 6: expected '=', got 'neg'"},
      {"%1 = (%x)", "expected the name of an op, got '('"},
      {"%1 = negg(%x)", "line 2, column 8: unknown op 'negg' (did you mean 'neg'?)"},
      {"%1 = argument {}", "arguments are declared in the first line"},
      {"%1 = neg", "neg(): expected 1 operand, got 0"},
      {"%1 = add(%x)", "add(f32[3]): expected 2 operands, got 1"},
      {"%1 = add(%x %y)", "expected ',' or ')', got '%y'"},
      {"%1 = add(%x, )", "expected a value such as %1, got ')'"},
      {"%1 = neg(%1)", "column 12: value %1 is not defined before this use"},
      {"%1 = neg(%x) : f32[4]", "column 18: the type is f32[3], not f32[4]"},
      {"%1 = neg(%x) : f64[3]", "the type is f32[3], not f64[3]"},
      {"%x = neg(%y)", "column 3: value %x is already defined"},
      {"%1 = neg(%x) %1 = neg(%x)", "column 16: value %1 is already defined"},
      {"%1 = neg(%x) {axis=1, axis=2}", "attribute 'axis' is given twice"},
      {"%1 = neg(%x) {1=1}", "expected the name of an attribute, got '1'"},
      {"%1 = neg(%x) {axis:1}", "expected '=', got ':'"},
      {"%1 = neg(%x) {axis=}", "expected an attribute value"},
      {"%1 = neg(%x) {axis=1 b=2}", "expected ',' or '}', got 'b'"},
      {"%1 = neg(%x) {axis=yes}", "expected a dtype (f32, f64, bool, i32 or i64), got 'yes'"},
      {"%1 = neg(%x) {axis=[1,2.5]}", "expected an integer, got '2.5'"},
      {"%1 = neg(%x) {axis=[[1]]}", "expected an integer, got '['"},
      {"%1 = neg(%x) {axis=1x}", "expected a number, got '1x'"},
      {"%1 = neg(%x) {axis=-}", "unexpected character \"-\""},
      {"%1 = neg(%x) {axis=1e999}", "number 1e999 does not fit f64"},
      {"%1 = neg(%x) {axis=9223372036854775808}", "does not fit i64"},
      {"%1 = constant", "constant(): attribute 'value' is missing"},
      {"%1 = constant {value=3}", "attribute 'value' must be a tensor"},
      {"%1 = constant {value=f32[2](1)}", "column 24: f32[2] wants 2 elements, got 1"},
      {"%1 = constant {value=f32[0](1)}", "f32[0] wants 0 elements, got 1"},
      {"%1 = constant {value=f64[1000000000000](1)}", "wants 1000000000000 elements, got 1"},
      {"%1 = constant {value=f32[4294967296,4294967296](1)}", "more elements than can be addressed"},
      {"%1 = constant {value=f32[2](1 2)}", "expected ',' or ')', got '2'"},
      {"%1 = constant {value=f32[1](1e39)}", "number 1e39 does not fit f32"},
      {"%1 = constant {value=i32[1](2147483648)}", "number 2147483648 does not fit i32"},
      {"%1 = constant {value=i32[1](0.5)}", "expected an integer, got '0.5'"},
      {"%1 = constant {value=bool[1](2)}", "expected 0 or 1, got '2'"},
      {"%1 = constant {value=f32[1](x)}", "expected a number, got 'x'"},
      {"%1 = constant {value=f32[1](-nano)}", "expected a number, got '-nano'"},
  };
  expect_mistakes(kMistakes, with_node);
}

TEST(ParserErrors, KeepTheirClass) {
  EXPECT_THROW(program_from_text("program f(%x: f32[4294967296,4294967296])"), ResourceError);
}

TEST(ParserErrors, HugeNamesAreCutInMessages) {
  const std::string huge(5'000'000, 'x');
  for (const std::string& text :
       {huge, "program f(%" + huge + ": f32[]) { return }", with_node("%1 = " + huge),
        with_node("%1 = neg(%\"" + huge + "\")"), "program \"" + huge + "\" " + huge}) {
    try {
      program_from_text(text);
      FAIL() << "accepted";
    } catch (const UserError& error) {
      EXPECT_LT(std::string(error.what()).size(), 300u);
    }
  }
}

TEST(ParserErrors, NestingIsNoRecursion) {
  for (char c : {'(', '[', '{', '-', '"', '%', '\\', ','}) {
    const std::string deep(1'000'000, c);
    EXPECT_THROW(program_from_text(with_node("%1 = constant {value=" + deep)), UserError);
    EXPECT_THROW(program_from_text(with_node("%1 = neg(" + deep)), UserError);
  }
}

TEST(ParserErrors, RandomDamageNeverEscapes) {
  const std::string valid =
      "program f(%x: f32[3], %\"c1\": f32[]) {\n  %1 = neg(%x) : f32[3] # c\n"
      "  %c1 = constant {value=f32[3](0.5,nan,-1e-3)} : f32[3]\n  %2 = mul(%1, %c1)\n  return %2, %x\n}\n";
  const auto size = static_cast<std::int64_t>(valid.size());
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    std::string text = valid;
    for (std::int64_t n = rng.between(1, 3); n > 0; --n) {
      const auto at = static_cast<std::size_t>(rng.below(size));
      const auto from = static_cast<std::size_t>(rng.below(size));
      if (rng.chance(0.4)) text[std::min(at, text.size() - 1)] = static_cast<char>(rng.below(256));
      else if (rng.chance(0.5)) text.insert(std::min(at, text.size()), valid.substr(from, 6));
      else text.erase(std::min(at, text.size() - 1), 1);
    }
    try {
      const std::string printed = program_to_text(program_from_text(text));
      EXPECT_EQ(program_to_text(program_from_text(printed)), printed);
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), StartsWith("line "));
    }
  }
}

TEST(ReadProgram, NamesTheFile) {
  const auto path =
      std::filesystem::path(testing::TempDir()) / ("loipe_" + std::to_string(::getpid()) + ".loipe");
  write_file(path, "program f(%x: f32[]) { return %x }");
  EXPECT_EQ(read_program(path).name(), "f");
  write_file(path, "program f(%x: f32[])\n{ return %y }");
  EXPECT_THAT(
      [&] { read_program(path); },
      ThrowsMessage<FileError>(HasSubstr(path.filename().string() + "\", line 2, column 10: value %y")));
  std::filesystem::remove(path);
  EXPECT_THAT([&] { read_program(path); }, ThrowsMessage<FileError>(HasSubstr("cannot be read")));
}

}  // namespace
}  // namespace loipe
