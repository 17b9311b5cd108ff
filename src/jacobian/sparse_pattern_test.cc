// SPDX-License-Identifier: Apache-2.0
#include "jacobian/sparse_pattern.h"

#include <gtest/gtest.h>

namespace loipe {
namespace {

using Positions = std::vector<std::pair<std::int64_t, std::int64_t>>;

Positions positions(const SparsePattern& pattern) {
  Positions result;
  for (std::size_t i = 0; i < pattern.rows.size(); ++i)
    result.emplace_back(pattern.rows[i], pattern.columns[i]);
  return result;
}

LocalJacobian of(std::vector<std::int64_t> extents, std::vector<Coordinate> out, std::vector<Coordinate> in) {
  Term term;
  term.extents = std::move(extents);
  term.out = std::move(out);
  term.in = std::move(in);
  return {{term}, nullptr};
}

TEST(SparsePattern, DiagonalsAndOffsets) {
  const LocalJacobian shifted = of({2}, {Coordinate::of(0)}, {Coordinate::of(0, 1, 1)});
  EXPECT_EQ(positions(sparse_pattern(shifted, {{2}, {4}})), (Positions{{0, 1}, {1, 2}}));
}

TEST(SparsePattern, ZeroScalarAndEmpty) {
  EXPECT_EQ(sparse_pattern(LocalJacobian::zero(), {{2}, {3}}).entry_count(), 0);
  EXPECT_EQ(positions(sparse_pattern(of({}, {}, {}), {{}, {}})), (Positions{{0, 0}}));
  EXPECT_EQ(sparse_pattern(LocalJacobian::zero(), {{0}, {3}}).entry_count(), 0);
}

TEST(SparsePattern, KroneckerProduct) {
  const LocalJacobian block =
      of({2, 2, 2}, {Coordinate::of(0), Coordinate::of(1)}, {Coordinate::of(2), Coordinate::of(1)});
  EXPECT_EQ(positions(sparse_pattern(block, {{2, 2}, {2, 2}})),
            (Positions{{0, 0}, {0, 2}, {1, 1}, {1, 3}, {2, 0}, {2, 2}, {3, 1}, {3, 3}}));
}

TEST(SparsePattern, TermsThatOverlapCountOnce) {
  LocalJacobian sum = of({3}, {Coordinate::of(0)}, {Coordinate::of(0)});
  sum.terms.push_back(of({2}, {Coordinate::of(0)}, {Coordinate::fixed(1)}).terms[0]);
  EXPECT_EQ(positions(sparse_pattern(sum, {{3}, {3}})), (Positions{{0, 0}, {0, 1}, {1, 1}, {2, 2}}));
}

TEST(SparsePattern, ARunTimeIndexMakesItsAxisDense) {
  Coordinate dynamic;
  dynamic.index = IndexArray{{0}, nullptr, Value{7}};
  EXPECT_EQ(positions(sparse_pattern(of({2}, {Coordinate::of(0)}, {dynamic}), {{2}, {2}})),
            (Positions{{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
}

TEST(SparsePattern, ExamplesShareOnePattern) {
  // Two examples of two rows each: the first label runs over examples, the second is tied.
  const LocalJacobian block = of({2, 2}, {Coordinate::of(0), Coordinate::of(1)}, {Coordinate::of(1)});
  EXPECT_EQ(positions(sparse_pattern(block, {{2, 2}, {2}, true})), (Positions{{0, 0}, {1, 1}}));
}

TEST(SparsePattern, PositionsBeyond63BitsAreRefused) {
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_THROW(sparse_pattern(LocalJacobian::zero(), {{large}, {large}}), ResourceError);
}

}  // namespace
}  // namespace loipe
