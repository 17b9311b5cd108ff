// SPDX-License-Identifier: Apache-2.0
#include "ops/normalization/family.h"

#include <algorithm>
#include <limits>

namespace loipe::ops {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

TensorType infer_rows(const InferContext& c, std::initializer_list<std::string_view> attributes) {
  expect_attributes(c, attributes);
  const TensorType& x = c.operand(0);
  if (!is_floating(x.dtype) || x.shape.empty())
    throw UserError("operand is " + to_string(x) +
                    ", expected floating point with at least one axis; the op works along the last one");
  return x;
}

Value outer_product_of_rows(Builder& b, Value x, Value y) {
  std::string rows;
  for (std::size_t axis = 0; axis + 1 < b.shape(x).size(); ++axis)
    rows += label_name(static_cast<Label>(axis));
  const Value factors[] = {x, y};
  return b.emit(op_einsum, factors, {{"spec", rows + "Y," + rows + "Z->" + rows + "YZ"}});
}

Exponentials exponentials(Builder& b, Value x, const Integers& axes) {
  const Shape shape = b.shape(x);
  Exponentials e;
  e.largest = reduce_max(b, x, axes);
  const Value largest = spread(b, e.largest, shape, axes);
  e.difference = select(b, eq(b, x, largest), 0, sub(b, x, largest));
  e.exponential = exp(b, e.difference);
  e.total = reduce_sum(b, e.exponential, axes);
  e.weights = div(b, e.exponential, spread(b, e.total, shape, axes));
  return e;
}

RowExponentials::RowExponentials(const std::vector<double>& row) : largest(-kInfinity), total(0) {
  for (double x : row) largest = x > largest || x != x ? x : largest;
  for (double x : row) {
    differences.push_back(x == largest ? 0 : x - largest);
    exponentials.push_back(std::exp(differences.back()));
    total += exponentials.back();
  }
}

Value is_alive(Builder& b, Value x) { return ne(b, x, -kInfinity); }

std::vector<Shape> row_shapes() { return {{4}, {1}, {2, 3}, {3, 1}, {2, 1, 3}, {0, 2}, {2, 0}}; }

}  // namespace loipe::ops
