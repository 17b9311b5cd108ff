// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/elementwise/family.h"
#include "ops/reduction/family.h"

// What ops share that put the rows of a tensor, its last axis, on one scale.

namespace loipe::ops {

/// Floating point of rank 1 or more; attributes as named.
TensorType infer_rows(const InferContext& context, std::initializer_list<std::string_view> attributes = {});

/// Calls visit(first, n) for each row: its entries lie at first..first+n-1.
template <class Visit>
void for_each_row(const TensorType& type, const Visit& visit) {
  const std::int64_t n = type.shape.back();
  for (std::int64_t first = 0; n > 0 && first < type.element_count(); first += n) visit(first, n);
}

inline Integers last_axis(const Shape& shape) { return {static_cast<std::int64_t>(shape.size()) - 1}; }
inline Value spread_rows(Builder& b, Value reduced, const Shape& shape) {
  return spread(b, reduced, shape, last_axis(shape));
}

/// x_bi y_bj for rows b: [..., n, n].
Value outer_product_of_rows(Builder& b, Value x, Value y);

/// e to the power x - m, with m the largest entry over the axes and inf - inf taken for 0,
/// so that equal infinite entries share, as in reduce_max.
struct Exponentials {
  Value largest;      ///< m, reduced
  Value difference;   ///< x - m
  Value exponential;  ///< e to that power
  Value total;        ///< sum over the axes, at least 1
  /// exponential / total: the softmax, but for rows of -inf alone, where it is uniform.
  Value weights;
};
Exponentials exponentials(Builder& b, Value x, const Integers& axes);

/// The same for one row of numbers.
struct RowExponentials {
  double largest, total;
  std::vector<double> differences, exponentials;
  explicit RowExponentials(const std::vector<double>& row);
};

/// The entries that exist: one of -inf has the weight 0 whatever the others are.
Value is_alive(Builder& b, Value x);

/// Operands of rank 1 to 3 with the last extent n, also 1 and 0.
std::vector<Shape> row_shapes();

}  // namespace loipe::ops
