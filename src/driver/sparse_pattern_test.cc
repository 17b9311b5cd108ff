// SPDX-License-Identifier: Apache-2.0
#include "driver/sparse_pattern.h"

#include <gtest/gtest.h>

#include <numeric>

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
  EXPECT_EQ(positions(sparse_pattern(shifted, {2}, {4})), (Positions{{0, 1}, {1, 2}}));
}

TEST(SparsePattern, ZeroScalarAndEmpty) {
  EXPECT_EQ(sparse_pattern(LocalJacobian::zero(), {2}, {3}).entry_count(), 0);
  EXPECT_EQ(positions(sparse_pattern(of({}, {}, {}), {}, {})), (Positions{{0, 0}}));
  EXPECT_EQ(sparse_pattern(LocalJacobian::zero(), {0}, {3}).entry_count(), 0);
}

TEST(SparsePattern, KroneckerProduct) {
  const LocalJacobian block =
      of({2, 2, 2}, {Coordinate::of(0), Coordinate::of(1)}, {Coordinate::of(2), Coordinate::of(1)});
  EXPECT_EQ(positions(sparse_pattern(block, {2, 2}, {2, 2})),
            (Positions{{0, 0}, {0, 2}, {1, 1}, {1, 3}, {2, 0}, {2, 2}, {3, 1}, {3, 3}}));
}

TEST(SparsePattern, TermsThatOverlapCountOnce) {
  LocalJacobian sum = of({3}, {Coordinate::of(0)}, {Coordinate::of(0)});
  sum.terms.push_back(of({2}, {Coordinate::of(0)}, {Coordinate::fixed(1)}).terms[0]);
  EXPECT_EQ(positions(sparse_pattern(sum, {3}, {3})), (Positions{{0, 0}, {0, 1}, {1, 1}, {2, 2}}));
}

TEST(SparsePattern, ARunTimeIndexMakesItsAxisDense) {
  Coordinate dynamic;
  dynamic.index = IndexArray{{0}, nullptr, Value{7}};
  EXPECT_EQ(positions(sparse_pattern(of({2}, {Coordinate::of(0)}, {dynamic}), {2}, {2})),
            (Positions{{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
}

TEST(SparsePattern, FoldedOverExamples) {
  // Two examples of two rows each; the second has an entry that the first lacks.
  const SparsePattern pattern{4, 2, {0, 1, 2, 3, 3}, {0, 1, 0, 0, 1}};
  const SparsePattern folded = folded_over_examples(pattern, 2);
  EXPECT_EQ(folded.row_count, 2);
  EXPECT_EQ(positions(folded), (Positions{{0, 0}, {1, 0}, {1, 1}}));
}

TEST(SparsePattern, ValuesAndIndices) {
  const SparsePattern pattern{3, 2, {0, 2, 2}, {1, 0, 1}};
  Tensor dense({DType::f64, {2, 3, 2}});
  std::iota(dense.elements<double>().begin(), dense.elements<double>().end(), 0.0);
  EXPECT_EQ(values_at(pattern, dense, true), Tensor::of<double>({2, 3}, {1, 4, 5, 7, 10, 11}));
  EXPECT_EQ(coo_indices(pattern).rows, Tensor::of<std::int32_t>({3}, {0, 2, 2}));
  EXPECT_EQ(csr_indices(pattern).indptr, Tensor::of<std::int32_t>({4}, {0, 1, 1, 3}));
  EXPECT_EQ(csr_indices(pattern).indices, Tensor::of<std::int32_t>({3}, {1, 0, 1}));
}

TEST(SparsePattern, WideIndicesOnlyWhereNeeded) {
  const SparsePattern pattern{1, std::int64_t{1} << 31, {0}, {(std::int64_t{1} << 31) - 1}};
  EXPECT_EQ(coo_indices(pattern).columns.dtype(), DType::i64);
}

}  // namespace
}  // namespace loipe
