// SPDX-License-Identifier: Apache-2.0
// op(a) x = b with a triangular. With l = op(a)^-T g for the cotangents g of x,
//
//   dx = op(a)^-1 (db - d op(a) x),   cotangent of b: l,   of op(a): -l x^T on the triangle read.
#include "ops/directions.h"
#include "ops/linear_algebra/triangular.h"

namespace loipe::ops {

namespace {

TensorType infer_solve(const InferContext& c) {
  expect_attributes(c, {"lower", "transposed", "unit_diagonal"});
  const TensorType &a = c.operand(0), &rhs = c.operand(1);
  Triangle::of(c.attributes);
  expect_square_matrices(a);
  Shape expected = a.shape;
  if (rhs.rank() >= 1) expected.back() = rhs.shape.back();
  if (rhs != TensorType{a.dtype, expected}) {
    expected.pop_back();
    throw UserError("the right-hand side is " + to_string(rhs) + " beside " + to_string(a) + ", expected " +
                    std::string(to_string(a.dtype)) + " of shape " + to_string(expected) +
                    " and one more axis, the columns");
  }
  return rhs;
}

/// One matrix, one column at a time, by substitution.
template <class T>
void substitute(std::span<const T> a, std::span<T> x, std::size_t n, std::size_t m,
                const Triangle& triangle) {
  const bool from_top = triangle.lower != triangle.transposed;
  for (std::size_t column = 0; column < m; ++column)
    for (std::size_t step = 0; step < n; ++step) {
      const std::size_t i = from_top ? step : n - 1 - step;
      T& now = x[i * m + column];
      for (std::size_t k = 0; k < step; ++k) {
        const std::size_t j = from_top ? k : n - 1 - k;
        now -= (triangle.transposed ? a[j * n + i] : a[i * n + j]) * x[j * m + column];
      }
      if (!triangle.unit_diagonal) now /= a[i * n + i];
    }
}

Tensor evaluate_solve(const EvaluateContext& c) {
  Tensor result = c.operand(1);
  const auto n = index_of(c.operand(0).shape().back()), m = index_of(c.type.shape.back());
  if (result.element_count() == 0) return result;
  visit_floating(c.type.dtype, [&]<class T>(T) {
    const std::span<const T> a = c.operand(0).elements<T>();
    const std::span<T> x = result.elements<T>();
    for (std::size_t matrix = 0; matrix < a.size() / (n * n); ++matrix)
      substitute(a.subspan(matrix * n * n, n * n), x.subspan(matrix * n * m, n * m), n, m,
                 Triangle::of(c.attributes));
  });
  return result;
}

class SolveJacobian final : public ImplicitJacobian {
 public:
  explicit SolveJacobian(const JacobianContext& c)
      : dtype_(c.dtype()),
        triangle_(Triangle::of(c.attributes())),
        by_matrix_(c.operand_index == 0),
        a_(c.operand(0)),
        x_(c.node),
        batch_axes_(c.type().shape.size() - 2),
        multiplications_(c.type().element_count() * c.operand_type(0).shape.back() * (by_matrix_ ? 2 : 1)) {}

  Value jvp(Builder& b, Value tangents) const override {
    if (!by_matrix_) return solve_directions(b, a_, tangents, triangle_);
    const char* spec = triangle_.transposed ? "Dji,jm->Dim" : "Dij,jm->Dim";
    const Value moved = matrix_einsum(b, triangle_part(b, tangents), x_, spec);
    return solve_directions(b, a_, neg(b, moved), triangle_);
  }

  Value vjp(Builder& b, Value cotangents) const override {
    const Value adjoint = solve_directions(b, a_, cotangents, triangle_.turned());
    if (!by_matrix_) return adjoint;
    const char* spec = triangle_.transposed ? "Djm,im->Dij" : "Dim,jm->Dij";
    return neg(b, triangle_part(b, matrix_einsum(b, adjoint, x_, spec)));
  }

  DType dtype() const override { return dtype_; }
  std::size_t tied_axes() const override { return batch_axes_; }
  std::int64_t multiplications() const override { return multiplications_; }

 private:
  Value triangle_part(Builder& b, Value x) const {
    return kept_triangle(b, x, triangle_.lower, !triangle_.unit_diagonal);
  }

  DType dtype_;
  Triangle triangle_;
  bool by_matrix_;
  Value a_, x_;
  std::size_t batch_axes_;
  std::int64_t multiplications_;
};

std::vector<Sample> solve_samples(Rng& rng) {
  std::vector<Sample> samples;
  const auto append = [&](const Shape& a, const Shape& rhs, const Triangle& triangle) {
    samples.push_back({{draw_triangular(rng, a), draw_tensor(rng, DType::f64, rhs, between<-2.0, 2.0>)},
                       triangle.attributes()});
  };
  for (bool lower : {true, false})
    for (bool transposed : {true, false})
      for (bool unit_diagonal : {true, false}) append({3, 3}, {3, 2}, {lower, transposed, unit_diagonal});
  append({1, 1}, {1, 1}, {});
  append({2, 2, 2}, {2, 2, 3}, {false, true, false});
  append({1, 2, 2, 2}, {1, 2, 2, 1}, {true, true, true});
  append({0, 2, 2}, {0, 2, 1}, {});
  append({2, 2}, {2, 0}, {});
  return samples;
}

}  // namespace

constinit const OpDef op_triangular_solve{
    .name = "triangular_solve",
    .summary = "the solution x of a x = b (transposed=1: of a^T x = b) from one triangle of a; operands a, b",
    .arity = kBinary,
    .infer = infer_solve,
    .evaluate = evaluate_solve,
    .jacobian =
        [](JacobianContext& c) {
          if (c.type().element_count() == 0) return LocalJacobian::zero();
          return LocalJacobian{{}, std::make_shared<SolveJacobian>(c)};
        },
    .cost =
        [](const CostContext& c) {
          const std::int64_t count = c.type.element_count(), n = c.operand(0).shape.back();
          return OpCost{.multiplications = count * std::max<std::int64_t>(n - 1, 0) / 2,
                        .additions = count * std::max<std::int64_t>(n - 1, 0) / 2,
                        .divisions = c.attributes.integer("unit_diagonal") != 0 ? 0 : count};
        },
    .samples = solve_samples,
    .tolerance = Tolerance::function,
    .special_points =
        [](Rng&) {
          return std::vector<Sample>{
              {{Tensor::of<double>({1, 1}, {0}), Tensor::of<double>({1, 1}, {1})}, Triangle{}.attributes()}};
        },
    .jax_name = "triangular_solve",
};

}  // namespace loipe::ops
