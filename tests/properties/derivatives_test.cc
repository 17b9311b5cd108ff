// SPDX-License-Identifier: Apache-2.0
// Laws of derivatives on random programs: products with the Jacobian are products with
// the dense Jacobian; the flow applied to its own output gives second and third
// derivatives, in every mixture of orders; Hessians are symmetric.
#include <gtest/gtest.h>

#include <numeric>

#include "base/rng.h"
#include "driver/derivative.h"
#include "ir/interpreter.h"
#include "ops/emit.h"
#include "support/dense_jacobian.h"
#include "support/random_program.h"

namespace loipe {
namespace {

using testing::dense_jacobian;
using testing::random_arguments;
using testing::random_program;
using testing::RandomProgramOptions;
using testing::relative_deviation;

std::vector<std::size_t> positions(std::size_t count) {
  std::vector<std::size_t> result(count);
  std::iota(result.begin(), result.end(), std::size_t{0});
  return result;
}

Tensor random_tensor(const Shape& shape, Rng& rng) {
  Tensor tensor(TensorType{DType::f64, shape});
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, rng.uniform(-1, 1));
  return tensor;
}

Shape joined(const Shape& first, const Shape& second) {
  Shape shape = first;
  shape.insert(shape.end(), second.begin(), second.end());
  return shape;
}

std::vector<EliminationOrder> some_orders(const Program& program, std::uint64_t seed) {
  return {forward_order(program), reverse_order(program), random_order(program, seed)};
}

/// The results of the last `count` outputs.
std::vector<Tensor> last(std::vector<Tensor> all, std::size_t count) {
  return {all.end() - static_cast<std::ptrdiff_t>(count), all.end()};
}

/// A program, a point, its dense Jacobian and seeds for all of it.
struct Subject {
  Program program;
  std::vector<std::size_t> wrt;
  std::vector<Tensor> point, jacobian;
  Rng rng;

  Subject(std::uint64_t seed, const RandomProgramOptions& options)
      : program(random_program(seed, options)),
        wrt(positions(program.arguments().size())),
        point(random_arguments(program, seed)),
        jacobian(dense_jacobian(program, point, wrt)),
        rng(seed + 77) {}

  const Shape& out(std::size_t i) const { return program.shape(program.outputs()[i]); }
  const Shape& in(std::size_t k) const { return program.shape(program.arguments()[k]); }

  std::vector<Tensor> tangents(const Shape& directions) {
    std::vector<Tensor> seeds;
    for (std::size_t k : wrt) seeds.push_back(random_tensor(joined(directions, in(k)), rng));
    return seeds;
  }
  std::vector<Tensor> cotangents(const Shape& directions) {
    std::vector<Tensor> seeds;
    for (std::size_t i = 0; i < program.outputs().size(); ++i)
      seeds.push_back(random_tensor(joined(directions, out(i)), rng));
    return seeds;
  }

  /// directions + out of output i: sum over k of J_ik v_k.
  Tensor pushed(std::size_t i, const Shape& directions, const std::vector<Tensor>& v) const {
    Tensor result(TensorType{DType::f64, joined(directions, out(i))});
    const std::int64_t m = element_count(out(i));
    for (std::int64_t d = 0; d < element_count(directions); ++d)
      for (std::size_t k : wrt) {
        const Tensor& block = jacobian[i * wrt.size() + k];
        const std::int64_t n = element_count(in(k));
        for (std::int64_t row = 0; row < m; ++row)
          for (std::int64_t column = 0; column < n; ++column)
            result.set(d * m + row,
                       result.at(d * m + row) + block.at(row * n + column) * v[k].at(d * n + column));
      }
    return result;
  }
  /// directions + in of argument k: sum over i of u_i J_ik.
  Tensor pulled(std::size_t k, const Shape& directions, const std::vector<Tensor>& u) const {
    const std::int64_t n = element_count(in(k));
    Tensor result(TensorType{DType::f64, joined(directions, in(k))});
    for (std::int64_t d = 0; d < element_count(directions); ++d)
      for (std::size_t i = 0; i < program.outputs().size(); ++i) {
        const Tensor& block = jacobian[i * wrt.size() + k];
        const std::int64_t m = element_count(out(i));
        for (std::int64_t row = 0; row < m; ++row)
          for (std::int64_t column = 0; column < n; ++column)
            result.set(d * n + column,
                       result.at(d * n + column) + block.at(row * n + column) * u[i].at(d * m + row));
      }
    return result;
  }
};

double inner(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::int64_t e = 0; e < a[i].element_count(); ++e) sum += a[i].at(e) * b[i].at(e);
  return sum;
}

std::vector<Tensor> with(std::vector<Tensor> point, const std::vector<Tensor>& seeds) {
  point.insert(point.end(), seeds.begin(), seeds.end());
  return point;
}

void expect_products(Subject& s, const EliminationOrder& order, const Shape& directions) {
  SCOPED_TRACE(order.name + ", directions " + to_string(directions));
  const std::vector<Tensor> v = s.tangents(directions), u = s.cotangents(directions);
  AccumulationRequest forward{s.wrt, order}, backward{s.wrt, order};
  forward.tangents = directions;
  backward.cotangents = directions;
  const Accumulation jvp = accumulate(s.program, forward), vjp = accumulate(s.program, backward);
  const std::size_t outputs = s.program.outputs().size();
  const std::vector<Tensor> jv = last(evaluate(jvp.program, with(s.point, v)), outputs);
  const std::vector<Tensor> uj = last(evaluate(vjp.program, with(s.point, u)), s.wrt.size());
  for (std::size_t i = 0; i < outputs; ++i)
    EXPECT_LT(relative_deviation(jv[i], s.pushed(i, directions, v), 1.0), 1e-11) << "output " << i;
  for (std::size_t k : s.wrt)
    EXPECT_LT(relative_deviation(uj[k], s.pulled(k, directions, u), 1.0), 1e-11) << "argument " << k;
  const double left = inner(u, jv), right = inner(uj, v);
  EXPECT_NEAR(left, right, 1e-10 * (1 + std::abs(left)));
  for (const Accumulation* a : {&jvp, &vjp}) {
    EXPECT_EQ(a->cost.multiplications, a->counted.multiplications);
    EXPECT_EQ(a->cost.additions, a->counted.additions);
  }
}

TEST(DerivativeLaws, ProductsAreThoseWithTheDenseJacobianInEveryOrder) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Subject s(seed, {.nodes = 12, .all_sinks_are_outputs = seed % 2 == 0});
    for (const EliminationOrder& order : some_orders(s.program, seed))
      for (const Shape& directions : {Shape{}, Shape{1}, Shape{3}, Shape{2, 2}, Shape{100}})
        expect_products(s, order, directions);
    if (HasFailure()) FAIL() << "first failing seed: " << seed;
  }
}

/// u J v of both seeds at once: one bilinear number, or a matrix of them.
TEST(DerivativeLaws, SeedsOnBothSidesGiveABilinearForm) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Subject s(seed, {.nodes = 10});
    const std::vector<Tensor> v = s.tangents({2}), u = s.cotangents({});
    for (const EliminationOrder& order : some_orders(s.program, seed)) {
      AccumulationRequest request{s.wrt, order};
      request.tangents = Shape{2};
      request.cotangents = Shape{};
      const std::vector<Tensor> results =
          last(evaluate(accumulate(s.program, request).program, with(with(s.point, v), u)), 1);
      Tensor expected(TensorType{DType::f64, {2}});
      for (std::size_t i = 0; i < s.program.outputs().size(); ++i) {
        const Tensor pushed = s.pushed(i, {2}, v);
        const std::int64_t m = element_count(s.out(i));
        for (std::int64_t e = 0; e < pushed.element_count(); ++e)
          expected.set(e / m, expected.at(e / m) + pushed.at(e) * u[i].at(e % m));
      }
      EXPECT_LT(relative_deviation(results[0], expected, 1.0), 1e-11) << order.name;
    }
  }
}

/// Of any program one number: the sum of products of its outputs' entries with fixed weights.
Program with_one_number(Program program) {
  const std::vector<Value> outputs(program.outputs().begin(), program.outputs().end());
  Builder builder(std::move(program));
  Value total = builder.scalar(0, DType::f64);
  for (Value output : outputs) {
    Integers axes(builder.shape(output).size());
    std::iota(axes.begin(), axes.end(), std::int64_t{0});
    const Value squared = ops::mul(builder, output, ops::add(builder, output, 0.3));
    total = ops::add(builder, total, axes.empty() ? squared : ops::reduce_sum(builder, squared, axes));
  }
  return builder.finish({total});
}

DerivativeRequest request_of(DerivativeKind kind, const Program& program, const std::string& order,
                             const std::string& outer) {
  DerivativeRequest request;
  request.kind = kind;
  request.wrt = positions(program.arguments().size());
  request.of = positions(program.outputs().size());
  request.order = resolve_order(order, program, "");
  request.outer_order = outer;
  return request;
}

/// The derivative alone, by the interpreter.
std::vector<Tensor> derivative(const Program& program, const DerivativeRequest& request,
                               const std::vector<Tensor>& inputs) {
  const DerivativePlan plan = plan_derivative(program, request);
  const Accumulation accumulation = accumulate(plan.program, plan.request);
  EXPECT_EQ(accumulation.cost.multiplications, accumulation.counted.multiplications);
  return last(evaluate(accumulation.program, inputs), accumulation.blocks.size());
}

/// Small enough for dense matrices of second derivatives.
bool is_small(const std::vector<Tensor>& point) {
  std::int64_t elements = 0;
  for (const Tensor& tensor : point) elements += tensor.element_count();
  return elements <= 16;
}

constexpr const char* kMixtures[][2] = {{"reverse", "forward"},
                                        {"reverse", "reverse"},
                                        {"forward", "reverse"},
                                        {"forward", "forward"},
                                        {"reverse", ""}};

/// The oracle: dense local Jacobians of the program that elimination recorded for the Jacobian.
std::vector<Tensor> dense_hessian(const Program& program, const std::vector<Tensor>& point) {
  const std::vector<std::size_t> wrt = positions(program.arguments().size());
  AccumulationRequest request{wrt, forward_order(program)};
  request.returned = std::vector<Value>{};
  return dense_jacobian(accumulate(program, request).program, point, wrt);
}

TEST(DerivativeLaws, HessiansAreSymmetricAndEqualInEveryMixtureOfOrders) {
  int checked = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Program program = with_one_number(random_program(seed, {.nodes = 9}));
    const std::vector<Tensor> point = random_arguments(program, seed);
    if (!is_small(point)) continue;
    ++checked;
    const std::size_t n = program.arguments().size();
    const std::vector<Tensor> expected = dense_hessian(program, point);
    for (const auto& [order, outer] : kMixtures) {
      SCOPED_TRACE(std::string(outer) + " over " + order);
      const std::vector<Tensor> hessian =
          derivative(program, request_of(DerivativeKind::hessian, program, order, outer), point);
      ASSERT_EQ(hessian.size(), n * n);
      for (std::size_t i = 0; i < hessian.size(); ++i)
        EXPECT_LT(relative_deviation(hessian[i], expected[i], 1.0), 1e-10) << "block " << i;
      for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b) {
          const std::int64_t rows = point[a].element_count(), columns = point[b].element_count();
          for (std::int64_t e = 0; e < rows * columns; ++e)
            ASSERT_NEAR(hessian[a * n + b].at(e), hessian[b * n + a].at(e % columns * rows + e / columns),
                        1e-9 * (1 + std::abs(hessian[a * n + b].at(e))));
        }
    }
    if (HasFailure()) FAIL() << "first failing seed: " << seed;
  }
  EXPECT_GE(checked, 20);
}

TEST(DerivativeLaws, HessianVectorProductsAreProductsWithTheHessian) {
  int checked = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Program program = with_one_number(random_program(seed, {.nodes = 9}));
    const std::vector<Tensor> point = random_arguments(program, seed);
    if (!is_small(point)) continue;
    ++checked;
    const std::vector<Tensor> hessian = dense_hessian(program, point);
    const std::size_t n = program.arguments().size();
    Rng rng(seed);
    constexpr std::int64_t kDirections = 2;
    std::vector<Tensor> v;
    for (const Tensor& x : point) v.push_back(random_tensor(joined({kDirections}, x.shape()), rng));
    for (const auto& [order, outer] : kMixtures) {
      SCOPED_TRACE(std::string(outer) + " over " + order);
      DerivativeRequest request = request_of(DerivativeKind::hvp, program, order, outer);
      request.directions = kDirections;
      const std::vector<Tensor> products = derivative(program, request, with(point, v));
      for (std::size_t a = 0; a < n; ++a) {
        const std::int64_t rows = point[a].element_count();
        Tensor expected(TensorType{DType::f64, joined({kDirections}, point[a].shape())});
        for (std::size_t b = 0; b < n; ++b)
          for (std::int64_t d = 0; d < kDirections; ++d)
            for (std::int64_t row = 0; row < rows; ++row) {
              const std::int64_t columns = point[b].element_count();
              double sum = expected.at(d * rows + row);
              for (std::int64_t c = 0; c < columns; ++c)
                sum += hessian[a * n + b].at(row * columns + c) * v[b].at(d * columns + c);
              expected.set(d * rows + row, sum);
            }
        EXPECT_LT(relative_deviation(products[a], expected, 1.0), 1e-10) << "argument " << a;
      }
    }
    if (HasFailure()) FAIL() << "first failing seed: " << seed;
  }
  EXPECT_GE(checked, 20);
}

/// Once more: the optimised program of the Hessian is differentiated again.
TEST(DerivativeLaws, ThirdDerivativesEqualThoseOfDenseLocalJacobians) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Program program = with_one_number(random_program(seed, {.arguments = 1, .nodes = 6}));
    const std::vector<Tensor> point = random_arguments(program, seed);
    if (point[0].element_count() > 8) continue;
    DerivativePlan plan =
        plan_derivative(program, request_of(DerivativeKind::hessian, program, "reverse", "forward"));
    plan.request.returned = std::vector<Value>{};
    const Program hessian = run_passes(accumulate(plan.program, plan.request).program);
    const std::vector<Tensor> expected = dense_jacobian(hessian, point, {0});
    for (const char* order : {"forward", "reverse", "markowitz"}) {
      const std::vector<Tensor> third =
          derivative(hessian, request_of(DerivativeKind::jacobian, hessian, order, ""), point);
      ASSERT_EQ(third.size(), 1u);
      EXPECT_LT(relative_deviation(third[0], expected[0], 1.0), 1e-9) << order;
    }
    if (HasFailure()) FAIL() << "first failing seed: " << seed;
  }
}

/// The Hessian against differences of the gradient: the oracles above share rules with it.
TEST(DerivativeLaws, HessiansEqualDifferencesOfTheGradient) {
  constexpr double kStep = 1e-4;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Program program = with_one_number(random_program(seed, {.arguments = 1, .nodes = 8}));
    const std::vector<Tensor> point = random_arguments(program, seed);
    const DerivativeRequest gradient = request_of(DerivativeKind::gradient, program, "reverse", "");
    const Tensor hessian =
        derivative(program, request_of(DerivativeKind::hessian, program, "reverse", ""), point)[0];
    const std::int64_t n = point[0].element_count();
    for (std::int64_t column = 0; column < n; ++column) {
      std::vector<Tensor> up = point, down = point;
      up[0].set(column, up[0].at(column) + kStep);
      down[0].set(column, down[0].at(column) - kStep);
      const Tensor above = derivative(program, gradient, up)[0],
                   below = derivative(program, gradient, down)[0];
      EXPECT_EQ(above.shape(), point[0].shape());
      for (std::int64_t row = 0; row < n; ++row) {
        const double difference = (above.at(row) - below.at(row)) / (2 * kStep);
        EXPECT_NEAR(hessian.at(row * n + column), difference, 1e-5 * (1 + std::abs(difference)));
      }
    }
    if (HasFailure()) FAIL() << "first failing seed: " << seed;
  }
}

}  // namespace
}  // namespace loipe
