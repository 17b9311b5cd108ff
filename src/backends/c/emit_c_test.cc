// SPDX-License-Identifier: Apache-2.0
// The text of C sources; that they compute what they should is tested in tests/emit_c.
#include "backends/c/emit_c.h"

#include <gtest/gtest.h>
#include <loipe/error.h>

#include <sstream>

#include "backends/c/loops.h"
#include "ir/builder.h"
#include "ir/parser.h"
#include "ops/emit.h"

namespace loipe::c {
namespace {

/// Statements of the longest function.
std::size_t longest_function(const std::string& source) {
  std::size_t longest = 0, statements = 0;
  std::istringstream text(source);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("static") || line.starts_with("void")) statements = 0;
    if (line.ends_with(";")) ++statements;
    if (line == "}") longest = std::max(longest, statements);
  }
  return longest;
}

TEST(EmitC, PatternsAreConstants) {
  const Program program =
      program_from_text("program p(%x: f32[2]) {\n  %1 = neg(%x) : f32[2]\n  return %1\n}\n");
  const Pattern some{"jac_0_x", {0, 1}, {0, 5'000'000'000}}, full{"jac_0_y", {0, 0}, {0, 1}, true};
  const Source source = emit_c(program, {"my_function", {"in.x"}, {"out.0"}}, {some, full});
  EXPECT_NE(source.header.find("void my_function(const float* restrict in_x, float* restrict out_0, void*"),
            std::string::npos);
  EXPECT_NE(source.header.find("#define MY_FUNCTION_jac_0_x_NONZEROS 2"), std::string::npos);
  EXPECT_NE(source.header.find("#define MY_FUNCTION_jac_0_y_NONZEROS 2"), std::string::npos);
  EXPECT_NE(source.source.find("const int64_t my_function_jac_0_x_columns[2]"), std::string::npos);
  EXPECT_EQ(source.source.find("jac_0_y_rows"), std::string::npos) << "all elements need no table";
}

/// A block of zeros is a loop, not a statement for each.
TEST(EmitC, FunctionsAreShort) {
  Builder b("zeros");
  const Value x = b.argument("x", {DType::f64, {100}});
  std::vector<Value> outputs{ops::full(b, {100, 100}, 0, DType::f64)};
  for (int i = 0; i < 40; ++i) outputs.push_back(ops::exp(b, outputs.size() > 1 ? outputs.back() : x));
  const Program program = b.finish(outputs);
  const SourceNames names{"f", {"in.x"}, std::vector<std::string>(outputs.size(), "out")};
  const Source source = emit_c(program, names, {});
  EXPECT_GT(source.source.size(), 100'000u);
  EXPECT_LT(longest_function(source.source), 1100u);
  EXPECT_LT(longest_function(emit_loops(program, names, {}).source), 1100u);
}

/// No recursion over the depth of a program.
TEST(EmitC, ProgramsMayBeDeep) {
  Builder b("chain");
  Value x = b.argument("x", {DType::f64, {2, 3}});
  for (int i = 0; i < 30'000; ++i) {
    x = ops::transpose(b, x, {1, 0});
    x = ops::reshape(b, x, i % 2 ? Shape{2, 3} : Shape{6});
    x = ops::reshape(b, ops::exp(b, ops::neg(b, x)), {2, 3});
  }
  const Source source = emit_loops(b.finish({x}), {"f", {"in.x"}, {"out.0"}}, {});
  EXPECT_LT(longest_function(source.source), 1100u);
}

TEST(EmitC, LargeProgramsAreLoops) {
  Builder b("product");
  const Value x = b.argument("x", {DType::f64, {200, 200}});
  const Program program = b.finish({ops::dot_general(b, x, x, {1}, {0})});
  const Source source = emit_c(program, {"f", {"in.x"}, {"out.0"}}, {});
  EXPECT_LT(source.source.size(), 2000u);
  EXPECT_NE(source.header.find("#define F_WORK_BYTES 0"), std::string::npos) << "the sums are in the output";
}

/// Neighbours of the result are neighbours of each factor, if need be in a copy of it.
TEST(EmitC, FactorsAreLaidOutForTheInnermostLoop) {
  Builder b("product");
  const Value x = b.argument("x", {DType::f64, {100, 200}}), y = b.argument("y", {DType::f64, {200, 200}});
  const Value turned = ops::transpose(b, y, {1, 0});
  const Program program = b.finish({ops::dot_general(b, x, turned, {1}, {0})});
  const Source source = emit_loops(program, {"f", {"in.x", "in.y"}, {"out.0"}}, {});
  EXPECT_NE(source.source.find("out_0[200 * i3 + i6] += in_x[200 * i3 + i5] * scratch0[200 * i5 + i6];"),
            std::string::npos)
      << source.source;
  EXPECT_NE(source.header.find("#define F_WORK_BYTES 320000"), std::string::npos);
}

/// What is computed once for each element needs no memory.
TEST(EmitC, ElementwiseOpsAreOneLoop) {
  Builder b("loop");
  const Value x = b.argument("x", {DType::f32, {1000}});
  const Value y = ops::tanh(b, ops::mul(b, x, ops::reverse(b, x, {0})));
  const Program program = b.finish({ops::add(b, y, ops::exp(b, y))});
  const Source source = emit_loops(program, {"f", {"in.x"}, {"out.0"}}, {});
  EXPECT_NE(source.header.find("#define F_WORK_BYTES 0"), std::string::npos);
  EXPECT_NE(source.source.find("in_x[-i0 + 999]"), std::string::npos) << source.source;
}

TEST(EmitC, AttentionSaysWhatItCosts) {
  Builder b("attention");
  const Value q = b.argument("q", {DType::f32, {1, 1, 50, 4}}), k = b.argument("k", {DType::f32, {1, 60, 4}});
  const Program program = b.finish({b.emit("attention", {q, k, k}, {{"scale", 1.0}})});
  const Source source = emit_c(program, {"f", {"q", "k"}, {"out.0"}}, {});
  EXPECT_NE(source.header.find("attention: 3000 pairs of queries and keys"), std::string::npos)
      << source.header;
}

TEST(EmitC, OpsThatAreDefinedInCppAreRefused) {
  Builder b("custom");
  const Value x = b.argument("x", {DType::f64, {}});
  const Program program = b.finish({b.emit("custom", {x, x}, {{"op", std::string("loipe.example")}})});
  ASSERT_EQ(reasons_against(program).size(), 1u);
  EXPECT_THROW(emit_c(program, {"f", {"in.x"}, {"out.0"}}, {}), Unsupported);
}

}  // namespace
}  // namespace loipe::c
