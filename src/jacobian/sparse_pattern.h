// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/sparse_pattern.h>

#include <vector>

#include "jacobian/known_zeros.h"
#include "jacobian/local_jacobian.h"

namespace loipe {

/// The shapes of a block: [examples] + out by in. Examples share one pattern.
struct BlockShape {
  Shape out;  ///< with the axis of examples, if there is one
  Shape in;
  bool has_examples = false;

  /// Without the axis of examples.
  Shape example_out() const { return has_examples ? Shape(out.begin() + 1, out.end()) : out; }
  std::int64_t rows() const { return element_count(example_out()); }
  std::int64_t columns() const { return element_count(in); }
};

/// From the labels of the block's terms and the known zeros of their values, if given.
/// Masks are not looked at, an axis that is indexed by a run-time value counts as dense,
/// and so does an implicit block.
/// Time and memory grow with the entries, not with the elements of the dense block.
/// ResourceError where positions do not fit into 63 bits.
SparsePattern sparse_pattern(const LocalJacobian& block, const BlockShape& shape,
                             const KnownZeros* zeros = nullptr);

/// A term's coordinates within one example, those that are only known at run time
/// replaced by a label of their own each, which runs over the whole axis.
class KnownPositions {
 public:
  KnownPositions(const Term& term, const BlockShape& shape);

  /// The labels that positions depend on, ascending: first the term's, then the new ones.
  const std::vector<Label>& labels() const { return labels_; }
  const std::vector<std::int64_t>& extents() const { return extents_; }
  /// The run-time coordinates, in the order of their labels, which are the last ones.
  const std::vector<Coordinate>& dynamic() const { return dynamic_; }

  /// Of assignments; as a floating number, which does not overflow.
  double count() const;
  /// row * columns + column for every assignment of `labels()`, the last running fastest.
  std::vector<std::int64_t> positions() const;
  /// Only where the support of the term's value, with the value's axes, is not zero.
  std::vector<std::int64_t> positions(const Tensor& support, const std::vector<Label>& axes) const;

 private:
  std::vector<Coordinate> known(std::span<const Coordinate> axes, const Shape& shape);
  std::int64_t flat(std::span<const std::int64_t> assignment) const;

  Shape out_shape_, in_shape_;
  std::vector<std::int64_t> extents_;
  std::vector<Coordinate> dynamic_;
  std::vector<Coordinate> out_, in_;
  std::vector<Label> labels_;
};

}  // namespace loipe
