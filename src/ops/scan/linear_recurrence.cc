// SPDX-License-Identifier: Apache-2.0
// y_i = a_i y_(i-1) + x_i, y_(-1) = 0 along the last axis. The recurrence is its own
// derivative, so it is closed under differentiation of any order:
//
//   dy_i = a_i dy_(i-1) + (dx_i + y_(i-1) da_i),
//
// and transposed, with the cotangents g of y, it runs the other way: l_i = a_(i+1) l_(i+1) + g_i
// is the cotangent of x_i, and y_(i-1) l_i that of a_i.
#include "ops/directions.h"
#include "ops/elementwise/family.h"

namespace loipe::ops {

namespace {

bool is_backwards(const Attributes& attributes) { return attributes.integer("reverse") != 0; }

TensorType infer_recurrence(const InferContext& c) {
  const TensorType type = infer_floating_with(c, {"reverse"});
  c.attributes.integer("reverse");
  if (c.operand(0).shape.empty() || c.operand(0).rank() != c.operand(1).rank())
    throw UserError(
        "expected operands of equal rank with at least one axis; the recurrence runs along the last");
  return type;
}

Tensor evaluate_recurrence(const EvaluateContext& c) {
  Tensor result(c.type);
  const bool backwards = is_backwards(c.attributes);
  const std::int64_t n = c.type.shape.back();
  Shape rows = c.type.shape;
  if (n > 0) rows.back() = 1;
  const std::array<View, 3> views{broadcast_view(c.operand(0).shape(), c.type.shape),
                                  broadcast_view(c.operand(1).shape(), c.type.shape),
                                  View{row_major_strides(c.type.shape)}};
  visit_floating(c.type.dtype, [&]<class T>(T) {
    const std::span<const T> a = c.operand(0).elements<T>(), x = c.operand(1).elements<T>();
    const std::span<T> y = result.elements<T>();
    for_each_index(rows, views, [&](const std::array<std::size_t, 3>& first) {
      const auto place = [&](std::size_t k, std::int64_t i) {
        return first[k] + static_cast<std::size_t>(i * views[k].strides.back());
      };
      for (std::int64_t step = 0; step < n; ++step) {
        const std::int64_t i = backwards ? n - 1 - step : step, before = backwards ? i + 1 : i - 1;
        T& now = y[place(2, i)];
        now = x[place(1, i)];
        if (step > 0) now += a[place(0, i)] * y[place(2, before)];
      }
    });
  });
  return result;
}

class RecurrenceJacobian final : public ImplicitJacobian {
 public:
  explicit RecurrenceJacobian(const JacobianContext& c)
      : dtype_(c.dtype()),
        by_a_(c.operand_index == 0),
        backwards_(is_backwards(c.attributes())),
        out_(c.type().shape),
        in_(c.operand_type().shape),
        a_(beside_directions(c.builder, c.operand(0))),
        before_(by_a_ ? beside_directions(c.builder, shifted(c.builder, c.node, backwards_, 0)) : Value{}) {}

  Value jvp(Builder& b, Value tangents) const override {
    return linear_recurrence(b, a_, by_a_ ? mul(b, before_, tangents) : tangents, backwards_);
  }

  Value vjp(Builder& b, Value cotangents) const override {
    // Where a is one number for the whole axis, its neighbour is the same.
    const Value next = b.shape(a_).back() == 1 ? a_ : shifted(b, a_, !backwards_, 0);
    const Value adjoint = linear_recurrence(b, next, cotangents, !backwards_);
    return summed_to(b, by_a_ ? mul(b, before_, adjoint) : adjoint, in_);
  }

  DType dtype() const override { return dtype_; }
  std::size_t tied_axes() const override { return common_leading_axes(out_, in_, 1); }
  std::int64_t multiplications() const override { return (by_a_ ? 2 : 1) * element_count(out_); }

 private:
  DType dtype_;
  bool by_a_, backwards_;
  Shape out_, in_;
  Value a_;       ///< [1, a...]
  Value before_;  ///< y_(i-1), [1, out...]
};

std::vector<Sample> recurrence_samples(Rng& rng) {
  std::vector<Sample> samples;
  const std::pair<Shape, Shape> shapes[] = {{{4}, {4}},
                                            {{1}, {1}},
                                            {{1}, {3}},
                                            {{2, 3}, {2, 3}},
                                            {{1, 3}, {2, 3}},
                                            {{2, 1}, {2, 3}},
                                            {{2, 3}, {2, 1}},
                                            {{2, 3}, {1, 3}},
                                            {{0}, {0}},
                                            {{0, 2}, {1, 2}},
                                            {{2, 1, 3}, {2, 2, 3}}};
  for (const auto& [a, x] : shapes)
    for (std::int64_t reverse : {0, 1})
      samples.push_back({{draw_tensor(rng, DType::f64, a, between<-1.5, 1.5>),
                          draw_tensor(rng, DType::f64, x, between<-2.0, 2.0>)},
                         {{"reverse", reverse}}});
  return samples;
}

}  // namespace

constinit const OpDef op_linear_recurrence{
    .name = "linear_recurrence",
    .summary = "y_i = a_i y_(i-1) + x_i along the last axis, from 0; reverse=1: from the end; operands a, x",
    .arity = kBinary,
    .infer = infer_recurrence,
    .evaluate = evaluate_recurrence,
    .jacobian =
        [](JacobianContext& c) {
          if (c.type().element_count() == 0) return LocalJacobian::zero();
          return LocalJacobian{{}, std::make_shared<RecurrenceJacobian>(c)};
        },
    .cost =
        [](const CostContext& c) {
          const std::int64_t count = c.type.element_count();
          return OpCost{.multiplications = count, .additions = count};
        },
    .samples = recurrence_samples,
    .tolerance = Tolerance::arithmetic,
};

}  // namespace loipe::ops
