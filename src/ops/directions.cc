// SPDX-License-Identifier: Apache-2.0
#include "ops/directions.h"

#include <algorithm>

namespace loipe::ops {

Value beside_directions(Builder& b, Value primal) {
  Shape shape = b.shape(primal);
  shape.insert(shape.begin(), 1);
  return reshape(b, primal, shape);
}

Value summed_to(Builder& b, Value directions, const Shape& operand) {
  const Shape shape = b.shape(directions);
  Integers axes;
  Shape target{shape[0]};
  for (std::size_t axis = 0; axis < operand.size(); ++axis) {
    if (operand[axis] != shape[axis + 1]) axes.push_back(static_cast<std::int64_t>(axis) + 1);
    target.push_back(operand[axis]);
  }
  return axes.empty() ? directions : reshape(b, reduce_sum(b, directions, axes), target);
}

std::size_t common_leading_axes(const Shape& a, const Shape& b, std::size_t core) {
  const std::size_t most = std::min(a.size(), b.size()) - core;
  std::size_t count = 0;
  while (count < most && a[count] == b[count]) ++count;
  return count;
}

Value shifted(Builder& b, Value x, bool to_earlier, double fill) {
  const std::size_t rank = b.shape(x).size();
  Integers low(rank, 0), high(rank, 0);
  (to_earlier ? low : high).back() = -1;
  (to_earlier ? high : low).back() = 1;
  if (b.shape(x).back() == 0) return x;
  return pad(b, x, b.scalar(fill, b.type(x).dtype), low, high, Integers(rank, 0));
}

}  // namespace loipe::ops
