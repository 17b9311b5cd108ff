// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_algebra/triangular.h"

#include <numeric>

namespace loipe::ops {

Attributes Triangle::attributes() const {
  return {{"lower", std::int64_t{lower}},
          {"transposed", std::int64_t{transposed}},
          {"unit_diagonal", std::int64_t{unit_diagonal}}};
}

Triangle Triangle::of(const Attributes& attributes) {
  return {attributes.integer("lower") != 0, attributes.integer("transposed") != 0,
          attributes.integer("unit_diagonal") != 0};
}

void expect_square_matrices(const TensorType& type) {
  const std::size_t rank = type.shape.size();
  if (!is_floating(type.dtype) || rank < 2 || type.shape[rank - 1] != type.shape[rank - 2])
    throw UserError("operand 0 is " + to_string(type) +
                    ", expected floating point with square matrices [..., n, n]");
}

namespace {

Integers axes_from(std::int64_t first, std::size_t count) {
  Integers axes(count);
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

}  // namespace

Value solve_directions(Builder& b, Value a, Value directions, const Triangle& triangle) {
  // [K, batch..., n, m] to [batch..., n, K, m], and K m columns.
  const Shape shape = b.shape(directions);
  const std::size_t rank = shape.size();
  Integers forth = axes_from(1, rank - 2);
  forth.push_back(0);
  forth.push_back(static_cast<std::int64_t>(rank) - 1);
  const Value moved = transpose(b, directions, forth);
  const Shape moved_shape = b.shape(moved);
  Shape columns(moved_shape.begin(), moved_shape.end() - 1);
  columns.back() *= shape.back();
  const Value operands[] = {a, reshape(b, moved, columns)};
  const Value solved = b.emit(op_triangular_solve, operands, triangle.attributes());
  Integers back{static_cast<std::int64_t>(rank) - 2};
  for (std::int64_t axis : axes_from(0, rank - 2)) back.push_back(axis);
  back.push_back(static_cast<std::int64_t>(rank) - 1);
  return transpose(b, reshape(b, solved, moved_shape), back);
}

Value transposed_matrices(Builder& b, Value x) {
  Integers permutation = axes_from(0, b.shape(x).size());
  std::swap(permutation.back(), permutation[permutation.size() - 2]);
  return transpose(b, x, permutation);
}

Value matrix_einsum(Builder& b, Value x, Value y, std::string_view spec) {
  // The batch letters A, B, ... stand behind D and before the two of the matrix.
  const std::size_t directions = spec.starts_with('D') ? 1 : 0;
  std::string batch;
  for (std::size_t axis = 2 + directions; axis < b.shape(x).size(); ++axis)
    batch += static_cast<char>('E' + static_cast<char>(batch.size()));
  std::string full;
  for (std::size_t i = 0; i < spec.size(); ++i) {
    const bool begins = i == 0 || spec[i - 1] == ',' || spec[i - 1] == '>';
    if (begins && spec[i] != 'D') full += batch;
    full += spec[i];
    if (spec[i] == 'D') full += batch;
  }
  const Value factors[] = {x, y};
  return b.emit(op_einsum, factors, {{"spec", full}});
}

Value kept_triangle(Builder& b, Value x, bool lower, bool with_diagonal) {
  const Shape shape = b.shape(x);
  const Shape matrix(shape.end() - 2, shape.end());
  const Value row = iota(b, matrix, 0, DType::i64), column = iota(b, matrix, 1, DType::i64);
  const Value high = lower ? row : column, low = lower ? column : row;
  Shape spread(shape.size() - 2, 1);
  spread.insert(spread.end(), matrix.begin(), matrix.end());
  return select(b, reshape(b, with_diagonal ? ge(b, high, low) : gt(b, high, low), spread), x, 0.0);
}

Tensor draw_triangular(Rng& rng, const Shape& shape) {
  Tensor a = draw_tensor(rng, DType::f64, shape, between<-1.0, 1.0>);
  const std::int64_t n = shape.back();
  for (std::int64_t i = 0; n > 0 && i < a.element_count(); ++i)
    if (i % n == i / n % n) a.set(i, rng.uniform(1, 2));
  return a;
}

}  // namespace loipe::ops
