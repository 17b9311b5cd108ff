// SPDX-License-Identifier: Apache-2.0
#include "orders/order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ir/builder.h"
#include "ir/parser.h"
#include "orders/moves.h"

namespace loipe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Vertex 3 is a pure output, vertex 2 an output that is also used.
Program sample() {
  return program_from_text(R"(program sample(%x: f64[3]) {
  %1 = sin(%x) : f64[3]
  %2 = exp(%1) : f64[3]
  %3 = mul(%2, %1) : f64[3]
  return %3, %2
})");
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// A file of this test with the given text.
std::string file(const std::string& name, const std::string& text) {
  const std::string path = (std::filesystem::temp_directory_path() / ("loipe_order_test_" + name)).string();
  std::ofstream(path) << text;
  return path;
}

TEST(Order, AnOutputThatIsAlsoUsedStaysEliminable) {
  EXPECT_THAT(eliminable_vertices(sample()), ElementsAre(1, 2));
  EXPECT_THAT(reverse_order(sample()).vertices, ElementsAre(2, 1));
}

TEST(Order, EveryFaultIsListed) {
  const std::string message = message_of([] { validate_order(sample(), {"mine", {1, 1, 3, 9}}); });
  EXPECT_THAT(message, HasSubstr("missing: 2"));
  EXPECT_THAT(message, HasSubstr("repeated: 1"));
  EXPECT_THAT(message, HasSubstr("unknown: 9"));
  EXPECT_THAT(message, HasSubstr("outputs, which are never eliminated: 3"));
}

TEST(Order, FilesHoldABareListOrAnObject) {
  EXPECT_THAT(resolve_order(file("bare.json", "[1, 2]"), sample(), "").vertices, ElementsAre(1, 2));
  EXPECT_THAT(resolve_order(file("object.json", R"({"order": [2, 1]})"), sample(), "").vertices,
              ElementsAre(2, 1));
}

TEST(Order, FilesHoldMoves) {
  const std::string text = R"([["front","x",1],["back",1,3],["vertex",2],["vertex",1]])";
  const EliminationOrder order =
      resolve_order(file("moves_ok.json", R"({"moves": )" + text + "}"), sample(), "");
  EXPECT_TRUE(order.vertices.empty());
  using Kind = EliminationMove::Kind;
  EXPECT_THAT(order.moves, ElementsAre(EliminationMove{Kind::front, 0, 1}, EliminationMove{Kind::back, 1, 3},
                                       EliminationMove{Kind::vertex, 2}, EliminationMove{Kind::vertex, 1}));
  EXPECT_EQ(moves_to_json(order.moves, sample()).dump(), text);
  EXPECT_EQ(to_string(order.moves, sample()), "front x->v1, back v1->v3, v2, v1");
}

TEST(Order, BadFilesSayWhatIsWrong) {
  const auto error = [](const std::string& name, const std::string& text, const char* task = "") {
    const std::string path = file(name, text);
    return message_of([&] { resolve_order(path, sample(), task); });
  };
  EXPECT_THAT(error("text.json", "{"), HasSubstr("is not valid JSON"));
  EXPECT_THAT(error("deep.json", std::string(100'000, '[')), HasSubstr("is not valid JSON"));
  EXPECT_THAT(error("none.json", "{}"), HasSubstr("has no \"order\""));
  EXPECT_THAT(error("words.json", R"(["a"])"), HasSubstr("entry 1"));
  EXPECT_THAT(error("large.json", "[1e30]"), HasSubstr("entry 1"));
  EXPECT_THAT(error("huge.json", "[99999999999999999999]"), HasSubstr("entry 1"));
  EXPECT_THAT(error("other.json", R"({"task": "f", "order": [1]})", "g"), HasSubstr("is for task \"f\""));
  EXPECT_THAT(error("moves.json", R"({"moves": []})"), HasSubstr("is not a list with entries"));
  EXPECT_THAT(error("both.json", R"({"moves": [["vertex", 1]], "order": [1]})"),
              HasSubstr("expected one of the two"));
  EXPECT_THAT(error("form.json", R"({"moves": [["vertex", 1, 2]]})"), HasSubstr("move 1 is"));
  EXPECT_THAT(error("kind.json", R"({"moves": [["face", 1, 2]]})"), HasSubstr("expected [\"vertex\", j]"));
  EXPECT_THAT(error("name.json", R"({"moves": [["front", "y", 1]]})"), HasSubstr("no argument is named"));
  EXPECT_THAT(error("gone.json", R"({"moves": [["vertex", 1], ["vertex", 1]]})"),
              HasSubstr("move 2, v1: vertex 1 does not exist"));
  EXPECT_THAT(error("edge.json", R"({"moves": [["front", "x", 2]]})"),
              HasSubstr("move 1, front x->v2: there is no such edge"));
  EXPECT_THAT(message_of([] { resolve_order("/nowhere/order.json", sample(), ""); }),
              HasSubstr("/nowhere/order.json"));
}

TEST(Order, UnknownNamesSuggestTheNearest) {
  EXPECT_THAT(message_of([] { resolve_order("revrse", sample(), ""); }), HasSubstr("did you mean 'reverse'"));
  EXPECT_THAT(message_of([] { resolve_order("alphagrad", sample(), ""); }),
              HasSubstr("ten benchmark functions"));
}

TEST(Order, RandomOrdersDependOnTheSeedAlone) {
  Builder builder;
  Value v = builder.argument("x", {DType::f64, {}});
  for (int i = 0; i < 50; ++i) v = builder.emit("sin", {v});
  const Program program = builder.finish({v});
  EXPECT_EQ(random_order(program, 7).vertices, random_order(program, 7).vertices);
  EXPECT_NE(random_order(program, 7).vertices, random_order(program, 8).vertices);
  validate_order(program, random_order(program, 7));
}

TEST(Order, MarkowitzServesAnyRank) {
  const Program program = program_from_text(R"(program deep(%x: f64[2,2,2,2]) {
  %1 = sin(%x) : f64[2,2,2,2]
  %2 = mul(%1, %x) : f64[2,2,2,2]
  %3 = add(%2, %1) : f64[2,2,2,2]
  %4 = reduce_sum(%3) {axes=[0,1,2,3]} : f64[]
  return %4
})");
  const EliminationOrder order = markowitz_order(program);
  validate_order(program, order);
  EXPECT_THAT(order.vertices, ElementsAre(1, 2, 3));  // all degrees are 2, ties go to the lowest number
}

TEST(Order, LongProgramsAreLinearWork) {
  Builder builder;
  Value v = builder.argument("x", {DType::f64, {}});
  for (int i = 0; i < 100'000; ++i) v = builder.emit("sin", {v});
  const Program program = builder.finish({v});
  // Far beyond the published simulator: the unweighted degree serves.
  EXPECT_EQ(markowitz_order(program).vertices.size(), 99'999u);
  EXPECT_EQ(reverse_order(program).vertices.front(), 99'999);
}

}  // namespace
}  // namespace loipe
