// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"

#include <gtest/gtest.h>

#include <set>

namespace loipe {
namespace {

TEST(Rng, StreamDependsOnTheSeedAlone) {
  // Seeds printed by tests must mean the same on every machine and in every version.
  Rng zero(0);
  EXPECT_EQ(zero.next(), 5987356902031041503u);
  EXPECT_EQ(zero.next(), 7051070477665621255u);
  EXPECT_NE(Rng(1).next(), Rng(2).next());
}

TEST(Rng, UniformStaysInItsInterval) {
  Rng rng(3);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double x = rng.uniform(-1, 3);
    ASSERT_GE(x, -1);
    ASSERT_LT(x, 3);
    sum += x;
  }
  EXPECT_NEAR(sum / 10'000, 1.0, 0.05);
}

TEST(Rng, BetweenReachesBothEnds) {
  Rng rng(4);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(rng.between(-2, 2));
  EXPECT_EQ(seen, (std::set<std::int64_t>{-2, -1, 0, 1, 2}));
}

TEST(Rng, NormalHasMeanZeroAndVarianceOne) {
  Rng rng(5);
  double sum = 0, squares = 0;
  for (int i = 0; i < 20'000; ++i) {
    const double x = rng.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 20'000, 0.0, 0.03);
  EXPECT_NEAR(squares / 20'000, 1.0, 0.05);
}

}  // namespace
}  // namespace loipe
