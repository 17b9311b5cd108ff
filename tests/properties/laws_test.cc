// SPDX-License-Identifier: Apache-2.0
// The laws on random programs. A failure prints the seed and the smallest case that
// still breaks the law.
#include "support/laws.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>

#include "support/random_program.h"

namespace loipe {

namespace testing {
/// How test names show the parameter.
void PrintTo(const Law& law, std::ostream* stream) { *stream << law.name; }
}  // namespace testing

namespace {

using testing::broken_law_report;
using testing::Case;
using testing::Law;
using testing::random_arguments;
using testing::random_program;
using testing::RandomProgramOptions;

/// LOIPE_SEEDS=10 in the environment tries ten times as many programs.
std::uint64_t seed_factor() {
  const char* text = std::getenv("LOIPE_SEEDS");
  return text ? std::strtoull(text, nullptr, 10) : 1;
}

class LawOnRandomPrograms : public ::testing::TestWithParam<Law> {
 protected:
  void expect_on_seeds(std::uint64_t first, std::uint64_t count, const RandomProgramOptions& options) const {
    for (std::uint64_t seed = first; seed < first + count * seed_factor() && !HasFailure(); ++seed) {
      Case c{random_program(seed, options), {}};
      c.arguments = random_arguments(c.program, seed);
      EXPECT_EQ(broken_law_report(GetParam(), c, "seed " + std::to_string(seed)), "");
    }
  }
};

TEST_P(LawOnRandomPrograms, HoldsForOneOrTwoOutputs) { expect_on_seeds(1, 300, {}); }

TEST_P(LawOnRandomPrograms, HoldsForManyOutputs) {
  expect_on_seeds(1'000'001, 100, {.nodes = 16, .all_sinks_are_outputs = true});
}

INSTANTIATE_TEST_SUITE_P(All, LawOnRandomPrograms,
                         ::testing::ValuesIn(testing::all_laws().begin(), testing::all_laws().end()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace loipe
