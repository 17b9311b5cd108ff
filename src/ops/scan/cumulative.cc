// SPDX-License-Identifier: Apache-2.0
// cumsum and cumprod along the last axis. `reverse` starts at the end, `exclusive` leaves
// the entry of each place out, so that the first one is 0, or 1.
#include "ops/directions.h"
#include "ops/elementwise/scalar.h"
#include "ops/normalization/family.h"

namespace loipe::ops {

namespace {

struct Direction {
  bool backwards, exclusive;
  explicit Direction(const Attributes& attributes)
      : backwards(attributes.integer("reverse") != 0), exclusive(attributes.integer("exclusive") != 0) {}
};

TensorType infer_cumulative(const InferContext& c) {
  expect_attributes(c, {"exclusive", "reverse"});
  const TensorType& x = c.operand(0);
  if (x.dtype == DType::boolean || x.shape.empty())
    throw UserError("operand is " + to_string(x) +
                    ", expected a number type with at least one axis; the op runs along the last one");
  Direction{c.attributes};
  return x;
}

template <auto combine, int start>
Tensor evaluate_cumulative(const EvaluateContext& c) {
  Tensor result(c.type);
  const Direction direction(c.attributes);
  visit_dtype(c.type.dtype, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>) {
      const std::span<const T> x = c.operand(0).elements<T>();
      const std::span<T> y = result.elements<T>();
      for_each_row(c.type, [&](std::int64_t first, std::int64_t n) {
        T so_far{start};
        for (std::int64_t step = 0; step < n; ++step) {
          const std::size_t i = index_of(first + (direction.backwards ? n - 1 - step : step));
          if (direction.exclusive) y[i] = so_far;
          so_far = combine(so_far, x[i]);
          if (!direction.exclusive) y[i] = so_far;
        }
      });
    }
  });
  return result;
}

/// A sum is its own derivative; transposed, it runs the other way.
class SumJacobian final : public ImplicitJacobian {
 public:
  explicit SumJacobian(const JacobianContext& c)
      : dtype_(c.dtype()), direction_(c.attributes()), rows_(c.type().shape.size() - 1) {}
  Value jvp(Builder& b, Value tangents) const override {
    return cumsum(b, tangents, direction_.backwards, direction_.exclusive);
  }
  Value vjp(Builder& b, Value cotangents) const override {
    return cumsum(b, cotangents, !direction_.backwards, direction_.exclusive);
  }
  DType dtype() const override { return dtype_; }
  std::size_t tied_axes() const override { return rows_; }
  std::int64_t multiplications() const override { return 0; }

 private:
  DType dtype_;
  Direction direction_;
  std::size_t rows_;
};

/// With p_i = x_i p_(i-1) and e_i = p_(i-1): dp_i = x_i dp_(i-1) + e_i dx_i, a linear
/// recurrence, without any division. The exclusive product is p one place later.
class ProductJacobian final : public ImplicitJacobian {
 public:
  explicit ProductJacobian(const JacobianContext& c)
      : dtype_(c.dtype()),
        direction_(c.attributes()),
        rows_(c.type().shape.size() - 1),
        count_(c.type().element_count()),
        x_(beside_directions(c.builder, c.operand())),
        before_(beside_directions(
            c.builder, direction_.exclusive ? c.node : shifted(c.builder, c.node, direction_.backwards, 1))) {
  }

  Value jvp(Builder& b, Value tangents) const override {
    const Value product = linear_recurrence(b, x_, mul(b, before_, tangents), direction_.backwards);
    return direction_.exclusive ? shifted(b, product, direction_.backwards, 0) : product;
  }
  Value vjp(Builder& b, Value cotangents) const override {
    const bool other_way = !direction_.backwards;
    if (direction_.exclusive) cotangents = shifted(b, cotangents, other_way, 0);
    return mul(b, before_, linear_recurrence(b, shifted(b, x_, other_way, 0), cotangents, other_way));
  }
  DType dtype() const override { return dtype_; }
  std::size_t tied_axes() const override { return rows_; }
  std::int64_t multiplications() const override { return 2 * count_; }

 private:
  DType dtype_;
  Direction direction_;
  std::size_t rows_;
  std::int64_t count_;
  Value x_;       ///< [1, x...]
  Value before_;  ///< [1, x...]
};

template <class Implicit>
LocalJacobian cumulative_jacobian(JacobianContext& c) {
  if (c.type().element_count() == 0) return LocalJacobian::zero();
  return LocalJacobian{{}, std::make_shared<Implicit>(c)};
}

std::vector<Sample> cumulative_samples(Rng& rng) {
  std::vector<Sample> samples;
  const auto append = [&](DType dtype, const Shape& shape) {
    for (std::int64_t exclusive : {0, 1})
      for (std::int64_t reverse : {0, 1})
        samples.push_back({{draw_tensor(rng, dtype, shape, away_from_zero<0.5, 1.5>)},
                           {{"exclusive", exclusive}, {"reverse", reverse}}});
  };
  for (const Shape& shape : row_shapes()) append(DType::f64, shape);
  append(DType::i32, {3});
  return samples;
}

/// A zero in the middle: the derivative by it is not 0.
std::vector<Sample> with_zeros(Rng&) {
  const Attributes forwards{{"exclusive", std::int64_t{0}}, {"reverse", std::int64_t{0}}};
  return {{{Tensor::of<double>({3}, {2, 0, 3})}, forwards}};
}

}  // namespace

constinit const OpDef op_cumsum{
    .name = "cumsum",
    .summary = "sums of the entries up to each place of the last axis",
    .arity = kUnary,
    .infer = infer_cumulative,
    .evaluate = evaluate_cumulative<scalar::add, 0>,
    .jacobian = cumulative_jacobian<SumJacobian>,
    .cost = cost_additions,
    .samples = cumulative_samples,
    .tolerance = Tolerance::arithmetic,
    .jax_name = "cumsum",
    .onnx_name = "CumSum",
};

constinit const OpDef op_cumprod{
    .name = "cumprod",
    .summary = "products of the entries up to each place of the last axis",
    .arity = kUnary,
    .infer = infer_cumulative,
    .evaluate = evaluate_cumulative<scalar::multiply, 1>,
    .jacobian = cumulative_jacobian<ProductJacobian>,
    .cost = cost_multiplications,
    .samples = cumulative_samples,
    .tolerance = Tolerance::arithmetic,
    .special_points = with_zeros,
    .jax_name = "cumprod",
};

}  // namespace loipe::ops
