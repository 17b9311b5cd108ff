// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <gtest/gtest.h>

namespace loipe {
namespace {

TEST(Printable, PlainTextStays) {
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("tensor \"größe\" \\ ∂ 𝛻 x\u0301"), "tensor \"größe\" \\ ∂ 𝛻 x\u0301");
}

TEST(Printable, ControlCharactersAreEscaped) {
  EXPECT_EQ(printable("a\nb\tc\r"), "a\\nb\\tc\\x0d");
  EXPECT_EQ(printable(std::string_view("\x1b[2J\0\x7f", 6)), "\\x1b[2J\\x00\\x7f");
  EXPECT_EQ(printable("\u0080\u009b2J\u009f\u00a0"), "\\xc2\\x80\\xc2\\x9b2J\\xc2\\x9f\u00a0");
}

TEST(Printable, BytesThatAreNoUtf8AreEscaped) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc3("), "\\xc3(");                           // no second byte
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");                    // cut
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  EXPECT_EQ(printable("\xf4\x8f\xbf\xbf"), "\xf4\x8f\xbf\xbf");
}

TEST(Printable, LongTextsAreCutBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdefg", 6), "abcdef...");
  EXPECT_EQ(printable("aé", 2), "a...");
  EXPECT_EQ(printable("ab\n", 3), "ab...");
  EXPECT_EQ(printable(std::string(5000, '\xff')).size(), kLongestMessage + 3);
}

/// What is printable already stays as it is.
TEST(Printable, IsIdempotent) {
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b) {
      const std::string once = printable(std::string{static_cast<char>(a), static_cast<char>(b), 'x'});
      EXPECT_EQ(printable(once), once);
    }
}

}  // namespace
}  // namespace loipe
