// SPDX-License-Identifier: Apache-2.0
// L L^T = s with s = (a + a^T)/2: so the op is a function of all entries of a, and its
// derivative is symmetric. With P(m) the lower triangle of m with half of the diagonal
// (Murray, Differentiation of the Cholesky decomposition, 2016, equations 8 and 9):
//
//   forward   dL = L P(L^-1 ds L^-T)
//   reverse   cotangent of s: L^-T P(L^T g) L^-1, of a: its symmetric part.
#include <cmath>
#include <limits>

#include "ops/directions.h"
#include "ops/linear_algebra/triangular.h"

namespace loipe::ops {

namespace {

TensorType infer_cholesky(const InferContext& c) {
  expect_attributes(c, {});
  expect_square_matrices(c.operand(0));
  return c.operand(0);
}

/// Column by column; false where a pivot is not positive.
template <class T>
bool factorise(std::span<const T> a, std::span<T> l, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = j; i < n; ++i) {
      T rest = (a[i * n + j] + a[j * n + i]) / 2;
      for (std::size_t k = 0; k < j; ++k) rest -= l[i * n + k] * l[j * n + k];
      if (i == j && !(rest > 0)) return false;
      l[i * n + j] = i == j ? std::sqrt(rest) : rest / l[j * n + j];
    }
  return true;
}

Tensor evaluate_cholesky(const EvaluateContext& c) {
  Tensor result(c.type);
  if (result.element_count() == 0) return result;
  const auto n = index_of(c.type.shape.back());
  visit_floating(c.type.dtype, [&]<class T>(T) {
    const std::span<const T> a = c.operand(0).elements<T>();
    const std::span<T> l = result.elements<T>();
    for (std::size_t first = 0; first < a.size(); first += n * n)
      if (!factorise(a.subspan(first, n * n), l.subspan(first, n * n), n))
        for (T& entry : l.subspan(first, n * n)) entry = std::numeric_limits<T>::quiet_NaN();
  });
  return result;
}

class CholeskyJacobian final : public ImplicitJacobian {
 public:
  explicit CholeskyJacobian(const JacobianContext& c)
      : dtype_(c.dtype()),
        l_(c.node),
        batch_axes_(c.type().shape.size() - 2),
        multiplications_(3 * c.type().element_count() * c.type().shape.back()) {}

  Value jvp(Builder& b, Value tangents) const override {
    // L^-1 ds L^-T is symmetric, so the second solve is one of the transpose.
    const Value half = solve_directions(b, l_, symmetric_part(b, tangents), {});
    const Value middle = solve_directions(b, l_, transposed_matrices(b, half), {});
    return from_left(b, "ij,Djk->Dik", lower_half(b, middle));
  }

  Value vjp(Builder& b, Value cotangents) const override {
    const Triangle turned = Triangle{}.turned();
    const Value middle = lower_half(b, from_left(b, "ji,Djk->Dik", cotangents));
    const Value half = solve_directions(b, l_, middle, turned);
    return symmetric_part(b, solve_directions(b, l_, transposed_matrices(b, half), turned));
  }

  DType dtype() const override { return dtype_; }
  std::size_t tied_axes() const override { return batch_axes_; }
  std::int64_t multiplications() const override { return multiplications_; }

 private:
  /// P
  static Value lower_half(Builder& b, Value x) {
    return mul(b, 0.5, add(b, kept_triangle(b, x, true, true), kept_triangle(b, x, true, false)));
  }
  static Value symmetric_part(Builder& b, Value x) {
    return mul(b, 0.5, add(b, x, transposed_matrices(b, x)));
  }
  Value from_left(Builder& b, std::string_view spec, Value x) const { return matrix_einsum(b, l_, x, spec); }

  DType dtype_;
  Value l_;
  std::size_t batch_axes_;
  std::int64_t multiplications_;
};

/// Symmetric parts that are positive definite: the diagonal dominates.
std::vector<Sample> cholesky_samples(Rng& rng) {
  std::vector<Sample> samples;
  for (const Shape& shape : {Shape{3, 3}, Shape{1, 1}, Shape{2, 2, 2}, Shape{1, 2, 3, 3}, Shape{0, 2, 2}}) {
    Tensor a = draw_tensor(rng, DType::f64, shape, between<-0.5, 0.5>);
    const std::int64_t n = shape.back();
    for (std::int64_t i = 0; i < a.element_count(); ++i)
      if (i % n == i / n % n) a.set(i, rng.uniform(2, 3));
    samples.push_back({{std::move(a)}, {}});
  }
  return samples;
}

}  // namespace

constinit const OpDef op_cholesky{
    .name = "cholesky",
    .summary =
        "the lower triangle L with L L^T the symmetric part of x [..., n, n]; NaN where that is not positive",
    .arity = kUnary,
    .infer = infer_cholesky,
    .evaluate = evaluate_cholesky,
    .jacobian =
        [](JacobianContext& c) {
          if (c.type().element_count() == 0) return LocalJacobian::zero();
          return LocalJacobian{{}, std::make_shared<CholeskyJacobian>(c)};
        },
    .cost =
        [](const CostContext& c) {
          const std::int64_t count = c.type.element_count(), n = c.type.shape.back();
          return OpCost{.multiplications = count * n / 6,
                        .additions = count * n / 6,
                        .divisions = count / 2,
                        .functions = n > 0 ? count / n : 0};
        },
    .samples = cholesky_samples,
    .tolerance = Tolerance::function,
    .special_points = [](Rng&) { return std::vector<Sample>{{{Tensor::of<double>({1, 1}, {0})}, {}}}; },
    .jax_name = "cholesky",
};

}  // namespace loipe::ops
