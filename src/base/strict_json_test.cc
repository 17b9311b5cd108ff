// SPDX-License-Identifier: Apache-2.0
#include "base/strict_json.h"

#include <gtest/gtest.h>

namespace loipe {
namespace {

std::string fault(std::string_view text, std::size_t deepest = 4) {
  try {
    parse_strict_json(text, deepest);
  } catch (const JsonFault& error) {
    return error.what();
  }
  return "none";
}

TEST(StrictJson, ReadsValues) {
  EXPECT_EQ(parse_strict_json(R"({"a": [1, 2], "b": {"a": null}})", 4)["a"][1], 2);
  EXPECT_EQ(fault(R"([{"a": 1}, {"a": 1}])"), "none") << "equal keys of different objects";
}

TEST(StrictJson, RefusesEqualKeys) {
  EXPECT_EQ(fault(R"({"a": 1, "b": 2, "a": 1})"), "repeats the key \"a\"");
  EXPECT_EQ(fault(R"({"x": {"a": 1, "\u0061": 1}})"), "repeats the key \"a\"");
  try {
    parse_strict_json(R"([{"x": {"a": 1, "a": 1}}])", 4);
    ADD_FAILURE();
  } catch (const JsonFault& error) {
    EXPECT_EQ(error.repeated_key, "a");
    EXPECT_EQ(error.depth, 3u);
  }
}

TEST(StrictJson, RefusesDepth) {
  EXPECT_EQ(fault("[[[1]]]"), "none");
  EXPECT_EQ(fault("[[[[1]]]]"), "nested too deeply");
  EXPECT_EQ(fault(std::string(1'000'000, '[')), "nested too deeply");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"x\":";
  EXPECT_EQ(fault(objects), "nested too deeply");
}

TEST(StrictJson, RefusesWhatIsNoJson) {
  for (const char* text : {"", "{", "[1,]", "{} x", "nul", "\"\xff\"", "[1]\x01", "{'a': 1}"})
    EXPECT_TRUE(fault(text).starts_with("malformed JSON at byte ")) << text;
  EXPECT_EQ(fault("[1e999]"), "a number out of range");
}

}  // namespace
}  // namespace loipe
