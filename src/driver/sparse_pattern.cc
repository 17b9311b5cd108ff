// SPDX-License-Identifier: Apache-2.0
#include "driver/sparse_pattern.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace loipe {

namespace {

template <class Index>
Tensor index_tensor(const std::vector<std::int64_t>& numbers) {
  Tensor tensor({dtype_of<Index>(), {static_cast<std::int64_t>(numbers.size())}});
  std::ranges::transform(numbers, tensor.elements<Index>().begin(),
                         [](std::int64_t n) { return static_cast<Index>(n); });
  return tensor;
}

Tensor index_tensor(const SparsePattern& pattern, const std::vector<std::int64_t>& numbers) {
  const std::int64_t largest = std::max({pattern.row_count, pattern.column_count, pattern.entry_count()});
  return largest <= std::numeric_limits<std::int32_t>::max() ? index_tensor<std::int32_t>(numbers)
                                                             : index_tensor<std::int64_t>(numbers);
}

/// Where the entries of each of `count` lines begin, given the line of every entry.
std::vector<std::int64_t> first_entries(const std::vector<std::int64_t>& lines, std::int64_t count) {
  std::vector<std::int64_t> first(static_cast<std::size_t>(count) + 1, 0);
  for (std::int64_t line : lines) ++first[static_cast<std::size_t>(line) + 1];
  for (std::size_t line = 1; line < first.size(); ++line) first[line] += first[line - 1];
  return first;
}

}  // namespace

Tensor values_at(const SparsePattern& pattern, const Tensor& dense, bool has_examples) {
  const std::int64_t examples = has_examples ? dense.shape()[0] : 1;
  Shape shape{pattern.entry_count()};
  if (has_examples) shape.insert(shape.begin(), examples);
  Tensor values({dense.dtype(), shape});
  const std::size_t size = size_of(dense.dtype());
  std::byte* target = values.bytes().data();
  for (std::int64_t example = 0; example < examples; ++example)
    for (std::size_t i = 0; i < pattern.rows.size(); ++i, target += size) {
      const std::int64_t row = example * pattern.row_count + pattern.rows[i];
      const auto place = static_cast<std::size_t>(row * pattern.column_count + pattern.columns[i]);
      std::memcpy(target, dense.bytes().data() + place * size, size);
    }
  return values;
}

CooIndices coo_indices(const SparsePattern& pattern) {
  return {index_tensor(pattern, pattern.rows), index_tensor(pattern, pattern.columns)};
}

CsrIndices csr_indices(const SparsePattern& pattern) {
  return {index_tensor(pattern, first_entries(pattern.rows, pattern.row_count)),
          index_tensor(pattern, pattern.columns)};
}

CscIndices csc_indices(const SparsePattern& pattern) {
  const std::vector<std::int64_t> first = first_entries(pattern.columns, pattern.column_count);
  std::vector<std::int64_t> next = first, rows(pattern.rows.size()), order(pattern.rows.size());
  for (std::size_t i = 0; i < pattern.rows.size(); ++i) {
    const auto place = static_cast<std::size_t>(next[static_cast<std::size_t>(pattern.columns[i])]++);
    rows[place] = pattern.rows[i];
    order[place] = static_cast<std::int64_t>(i);
  }
  return {index_tensor(pattern, first), index_tensor(pattern, rows), index_tensor(pattern, order)};
}

}  // namespace loipe
