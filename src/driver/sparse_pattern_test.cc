// SPDX-License-Identifier: Apache-2.0
#include "driver/sparse_pattern.h"

#include <gtest/gtest.h>

#include <numeric>

namespace loipe {
namespace {

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

TEST(SparsePattern, ColumnsComeWithTheirOrder) {
  // {{., 1, 2}, {., ., .}, {3, ., 4}}
  const SparsePattern pattern{3, 3, {0, 0, 2, 2}, {1, 2, 0, 2}};
  const CscIndices indices = csc_indices(pattern);
  EXPECT_EQ(indices.indptr, Tensor::of<std::int32_t>({4}, {0, 1, 2, 4}));
  EXPECT_EQ(indices.indices, Tensor::of<std::int32_t>({4}, {2, 0, 0, 2}));
  EXPECT_EQ(indices.order, Tensor::of<std::int32_t>({4}, {2, 0, 1, 3}));
}

}  // namespace
}  // namespace loipe
