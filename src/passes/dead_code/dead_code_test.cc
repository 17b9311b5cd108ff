// SPDX-License-Identifier: Apache-2.0
#include "passes/dead_code/dead_code.h"

#include "passes/pass_testing.h"

namespace loipe::passes {
namespace {

TEST(DeadCode, KeepsArgumentsAndWhatOutputsNeed) {
  EXPECT_EQ(after(dead_code, R"(program f(%unused: f64[2], %x: f64[2]) {
  %c1 = constant {value=f64[](3.0)}
  %c2 = constant {value=f64[](2.0)}
  %1 = exp(%x)
  %2 = mul(%1, %c1)
  %3 = mul(%x, %c2)
  %4 = sin(%2)
  return %3
})"),
            R"(program f(%unused: f64[2], %x: f64[2]) {
  %c1 = constant {value=f64[](2.0)} : f64[]
  %1 = mul(%x, %c1) : f64[2]
  return %1
}
)");
}

TEST(DeadCode, OutputsMayBeArgumentsConstantsAndRepeated) {
  const std::string body = "  %c1 = constant {value=f64[](3.0)}\n  return %y, %c1, %c1, %y\n";
  expect_unchanged(dead_code, "%x: f64[2], %y: f64[2]", body);
  expect_unchanged(dead_code, "%x: f64[2]", "  return\n");
}

}  // namespace
}  // namespace loipe::passes
