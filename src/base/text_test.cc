// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/rng.h"

namespace loipe {
namespace {

template <class T>
T read_back(const std::string& text) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

TEST(FormatDouble, LooksLikeAFloatingPointNumber) {
  EXPECT_EQ(format_double(0.0), "0.0");
  EXPECT_EQ(format_double(-0.0), "-0.0");
  EXPECT_EQ(format_double(3.0), "3.0");
  EXPECT_EQ(format_double(0.1), "0.1");
  EXPECT_EQ(format_double(1e22), "1e+22");
  EXPECT_EQ(format_double(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(format_double(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(format_double(-std::nan("")), "nan");
}

TEST(FormatFloat, IsAsShortAsSinglePrecisionAllows) {
  EXPECT_EQ(format_float(0.1f), "0.1");
  EXPECT_EQ(format_float(16777216.0f), "16777216.0");
}

TEST(FormatNumbers, ReadBackBitwiseTheSame) {
  Rng rng(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t bits = rng.next();
    double d;
    float f;
    std::memcpy(&d, &bits, sizeof d);
    std::memcpy(&f, &bits, sizeof f);
    if (std::isfinite(d)) {
      EXPECT_EQ(read_back<double>(format_double(d)), d);
    }
    if (std::isfinite(f)) {
      EXPECT_EQ(read_back<float>(format_float(f)), f);
    }
  }
}

TEST(Quote, KeepsOneLineAndUtf8) {
  EXPECT_EQ(quote("plain"), "\"plain\"");
  EXPECT_EQ(quote("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(quote("a\n\t\x01\x7f"), R"("a\n\t\x01\x7f")");
  EXPECT_EQ(quote("løype"), "\"løype\"");
}

TEST(Shortened, CutsWholeCharacters) {
  EXPECT_EQ(shortened("short"), "short");
  EXPECT_EQ(shortened("abcdef", 3), "abc...");
  EXPECT_EQ(shortened("aøb", 2), "a...");
}

TEST(Join, PutsSeparatorsBetween) {
  const std::vector<std::string> parts{"a", "b", "c"};
  EXPECT_EQ(join(parts, ", "), "a, b, c");
  EXPECT_EQ(join({}, ", "), "");
}

TEST(NearestName, FindsMisspeltAndShortenedNames) {
  const std::vector<std::string> names{"dot_general", "tanh", "reduce_sum"};
  EXPECT_EQ(nearest_name("tahn", names), "tanh");
  EXPECT_EQ(nearest_name("TANH", names), "tanh");
  EXPECT_EQ(nearest_name("dot", names), "dot_general");
  EXPECT_EQ(nearest_name("xyzzyxyzzy", names), "");
  EXPECT_EQ(did_you_mean("reduce_sun", names), " (did you mean 'reduce_sum'?)");
  EXPECT_EQ(did_you_mean("xyzzyxyzzy", names), "");
}

TEST(NearestName, AnswersAtOnceForHugeNames) {
  const std::string huge(10'000'000, 'x');
  EXPECT_EQ(nearest_name(huge, std::vector<std::string>{huge}), "");
  EXPECT_EQ(nearest_name("x", std::vector<std::string>{huge}), "");
}

TEST(WithThousands, GroupsDigits) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(12'345'678), "12,345,678");
  EXPECT_EQ(with_thousands(-123'456), "-123,456");
  EXPECT_EQ(with_thousands(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

}  // namespace
}  // namespace loipe
