// SPDX-License-Identifier: Apache-2.0
#include "ops/indexing.h"

#include <gtest/gtest.h>

namespace loipe::ops {
namespace {

std::vector<std::size_t> positions(const Shape& extents, const View& view) {
  std::vector<std::size_t> result;
  for_each_index(extents, std::array{view},
                 [&](const std::array<std::size_t, 1>& at) { result.push_back(at[0]); });
  return result;
}

TEST(Indexing, RowMajorStrides) {
  EXPECT_EQ(row_major_strides(Shape{2, 3, 4}), (Integers{12, 4, 1}));
  EXPECT_EQ(row_major_strides(Shape{}), Integers{});
}

TEST(Indexing, AScalarIsVisitedOnce) { EXPECT_EQ(positions({}, {{}, 7}), (std::vector<std::size_t>{7})); }

TEST(Indexing, NothingIsVisitedWhenAnExtentIsZero) { EXPECT_TRUE(positions({2, 0}, {{1, 1}}).empty()); }

TEST(Indexing, TransposesBroadcastsAndOffsets) {
  EXPECT_EQ(positions({2, 3}, {{1, 2}}), (std::vector<std::size_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(positions({2, 3}, {{0, 1}}), (std::vector<std::size_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(positions({3}, {{-2}, 4}), (std::vector<std::size_t>{4, 2, 0}));
}

}  // namespace
}  // namespace loipe::ops
