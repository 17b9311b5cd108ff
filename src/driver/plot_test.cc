// SPDX-License-Identifier: Apache-2.0
#include "driver/plot.h"

#include <gmock/gmock.h>

namespace loipe {
namespace {

using testing::HasSubstr;
using testing::Not;

Plot sample() {
  return {"a <b> & c",
          "seconds",
          "cost",
          {{"greedy", {{0.01, 10}, {0.1, 8}}}, {"anneal", {{0.1, 8}, {1, 5}}}},
          {{"reverse", 9}}};
}

TEST(Plot, HasItsTitleCurvesAndLines) {
  const std::string svg = to_svg(sample());
  EXPECT_THAT(svg, testing::StartsWith("<svg xmlns="));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  for (const char* text : {"a &lt;b&gt; &amp; c", ">seconds<", ">cost<", ">greedy<", ">anneal<", ">reverse<"})
    EXPECT_THAT(svg, HasSubstr(text));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(Plot, DearerIsHigher) {
  // The y of a dashed line, which stands for its value.
  const auto height_of = [](double value) {
    Plot plot = sample();
    plot.lines = {{"line", value}};
    const std::string svg = to_svg(plot);
    const std::size_t end = svg.find("\" stroke=\"#777777\"");
    return std::stod(svg.substr(svg.rfind('"', end - 1) + 1));
  };
  EXPECT_LT(height_of(9.5), height_of(6));
}

TEST(Plot, OnePointIsEnough) {
  const std::string svg = to_svg({"t", "x", "y", {{"only", {{0, 3}}}}, {}});
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, HasSubstr("<circle"));
}

}  // namespace
}  // namespace loipe
