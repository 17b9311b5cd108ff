// SPDX-License-Identifier: Apache-2.0
#include "driver/retype.h"

#include <gtest/gtest.h>

#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"

namespace loipe {
namespace {

constexpr const char* kSingle =
    "program f(%x: f32[2], %n: i32[2]) {\n"
    "  %1 = convert_element_type(%n) {dtype=f32} : f32[2]\n"
    "  %c1 = constant {value=f32[](0.5)} : f32[]\n"
    "  %2 = mul(%1, %c1) : f32[2]\n"
    "  %3 = gt(%x, %2) : bool[2]\n"
    "  %4 = select(%3, %x, %2) : f32[2]\n"
    "  return %4\n"
    "}\n";

TEST(Retype, ChangesFloatingValuesOnly) {
  const Program wide = retyped(program_from_text(kSingle), DType::f64);
  verify(wide);
  const std::string text = program_to_text(wide);
  EXPECT_EQ(text.find("f32"), std::string::npos) << text;
  EXPECT_NE(text.find("%n: i32[2]"), std::string::npos) << text;
  EXPECT_EQ(program_to_text(retyped(wide, DType::f32)), kSingle);
}

TEST(Retype, KnowsMixedPrograms) {
  EXPECT_FALSE(mixes_precisions(program_from_text(kSingle)));
  EXPECT_TRUE(mixes_precisions(program_from_text(
      "program f(%x: f32[2]) {\n  %1 = convert_element_type(%x) {dtype=f64}\n  return %1\n}\n")));
}

}  // namespace
}  // namespace loipe
