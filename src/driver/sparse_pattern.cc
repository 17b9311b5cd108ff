// SPDX-License-Identifier: Apache-2.0
#include "driver/sparse_pattern.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

namespace loipe {

namespace {

/// A set of positions of a matrix; the dense block exists anyway, so a bit for each of
/// its elements is cheap and keeps them sorted.
class PositionSet {
 public:
  PositionSet(std::int64_t rows, std::int64_t columns)
      : rows_(rows), columns_(columns), hits_(static_cast<std::size_t>(rows * columns), false) {}

  void insert(std::int64_t row, std::int64_t column) {
    hits_[static_cast<std::size_t>(row * columns_ + column)] = true;
  }

  SparsePattern pattern() const {
    SparsePattern result{rows_, columns_, {}, {}};
    for (std::size_t i = 0; i < hits_.size(); ++i) {
      if (!hits_[i]) continue;
      result.rows.push_back(static_cast<std::int64_t>(i) / columns_);
      result.columns.push_back(static_cast<std::int64_t>(i) % columns_);
    }
    return result;
  }

 private:
  std::int64_t rows_, columns_;
  std::vector<bool> hits_;
};

/// A term's coordinates, the unknown ones replaced by a label of their own.
struct StaticTerm {
  std::vector<std::int64_t> extents;
  std::vector<Coordinate> out, in;

  StaticTerm(const Term& term, const Shape& out_shape, const Shape& in_shape) : extents(term.extents) {
    out = with_known_axes(term.out, out_shape);
    in = with_known_axes(term.in, in_shape);
  }

  std::vector<Label> labels() const {
    std::set<Label> found;
    for (const auto* axes : {&out, &in})
      for (const Coordinate& coordinate : *axes)
        for_each_label(coordinate, [&](Label label) { found.insert(label); });
    return {found.begin(), found.end()};
  }

  std::int64_t flat(const std::vector<Coordinate>& axes, const Shape& shape,
                    std::span<const std::int64_t> assignment) const {
    std::int64_t result = 0;
    for (std::size_t axis = 0; axis < axes.size(); ++axis)
      result = result * shape[axis] + position(axes[axis], assignment, extents);
    return result;
  }

 private:
  std::vector<Coordinate> with_known_axes(const std::vector<Coordinate>& axes, const Shape& shape) {
    std::vector<Coordinate> result = axes;
    for (std::size_t axis = 0; axis < result.size(); ++axis) {
      if (!result[axis].is_dynamic()) continue;
      result[axis] = Coordinate::of(static_cast<Label>(extents.size()));
      extents.push_back(shape[axis]);
    }
    return result;
  }
};

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

}  // namespace

SparsePattern sparse_pattern(const LocalJacobian& block, const Shape& out, const Shape& in) {
  const std::int64_t rows = element_count(out), columns = element_count(in);
  PositionSet positions(rows, columns);
  if (block.implicit)
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column) positions.insert(row, column);
  for (const Term& term : block.terms) {
    const StaticTerm known(term, out, in);
    for_each_assignment(known.labels(), known.extents, [&](std::span<const std::int64_t> assignment) {
      positions.insert(known.flat(known.out, out, assignment), known.flat(known.in, in, assignment));
    });
  }
  return positions.pattern();
}

SparsePattern folded_over_examples(const SparsePattern& pattern, std::int64_t examples) {
  const std::int64_t rows = pattern.row_count / examples;
  PositionSet positions(rows, pattern.column_count);
  for (std::size_t i = 0; i < pattern.rows.size(); ++i)
    positions.insert(pattern.rows[i] % rows, pattern.columns[i]);
  return positions.pattern();
}

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
  std::vector<std::int64_t> first(static_cast<std::size_t>(pattern.row_count) + 1, 0);
  for (std::int64_t row : pattern.rows) ++first[static_cast<std::size_t>(row) + 1];
  for (std::size_t row = 1; row < first.size(); ++row) first[row] += first[row - 1];
  return {index_tensor(pattern, first), index_tensor(pattern, pattern.columns)};
}

}  // namespace loipe
