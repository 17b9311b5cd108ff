// SPDX-License-Identifier: Apache-2.0
// The derivative kinds of the C++ interface: shapes, names, batches, sparse Hessians,
// what is computed once, and mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <loipe/loipe.h>

#include <cmath>
#include <functional>

#include "ir/op_def.h"
#include "ir/parser.h"

namespace loipe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kBackends[] = {"reference", "jit"};

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// f(A, x) = tanh(A x), of A [2,3] and x [3].
const auto kLayer = [](auto A, auto x) { return tanh(matmul(A, x)); };
const TensorType kMatrix{DType::f64, {2, 3}}, kVector{DType::f64, {3}};
const auto kCubes = [](auto x) { return sum(x * x * x); };

Tensor matrix() { return Tensor::of<double>({2, 3}, {0.1, 0.2, 0.3, -0.4, 0.5, 0.6}); }
Tensor vector() { return Tensor::of<double>({3}, {1.0, -1.0, 2.0}); }

std::vector<std::string> result_names(const Derivative& derivative) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < derivative.result_count(); ++i) names.push_back(derivative.result_name(i));
  return names;
}

std::vector<std::string> argument_names(const Derivative& derivative) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < derivative.argument_count(); ++i) names.push_back(derivative.argument_name(i));
  return names;
}

TEST(DerivativeApi, ProductsAgreeWithTheJacobian) {
  const JacobianResult J = jacobian(kLayer, {{"A", kMatrix}, {"x", kVector}})({matrix(), vector()});
  const Tensor dA = Tensor::of<double>({2, 3}, {1, 2, 3, 4, 5, 6}),
               dx = Tensor::of<double>({3}, {-1, 0.5, 2});
  const Tensor u = Tensor::of<double>({2}, {3, -2});
  for (const char* backend : kBackends)
    for (const char* order : {"", "forward", "reverse", "markowitz"}) {
      SCOPED_TRACE(std::string(backend) + " " + order);
      const DerivativeOptions options{.order = order, .backend = backend};
      const Derivative forward = jvp(kLayer, {{"A", kMatrix}, {"x", kVector}}, options);
      EXPECT_THAT(argument_names(forward), ElementsAre("A", "x", "tangent.A", "tangent.x"));
      EXPECT_THAT(result_names(forward), ElementsAre("out.0", "jvp.0"));
      const DerivativeResult pushed = forward({matrix(), vector()}, {dA, dx});
      EXPECT_EQ(pushed.outputs[0].shape(), Shape{2});
      ASSERT_EQ(pushed.derivatives[0].shape(), Shape{2});
      for (std::int64_t i = 0; i < 2; ++i) {
        double expected = 0;
        for (std::int64_t e = 0; e < 6; ++e) expected += J.blocks[0][0].at(6 * i + e) * dA.at(e);
        for (std::int64_t e = 0; e < 3; ++e) expected += J.blocks[0][1].at(3 * i + e) * dx.at(e);
        EXPECT_NEAR(pushed.derivatives[0].at(i), expected, 1e-14);
        EXPECT_NEAR(pushed.outputs[0].at(i), J.outputs[0].at(i), 1e-15);
      }
      const Derivative backward = vjp(kLayer, {{"A", kMatrix}, {"x", kVector}}, options);
      EXPECT_THAT(argument_names(backward), ElementsAre("A", "x", "cotangent.0"));
      EXPECT_THAT(result_names(backward), ElementsAre("out.0", "vjp.A", "vjp.x"));
      const DerivativeResult pulled = backward({matrix(), vector()}, {u});
      ASSERT_EQ(pulled.derivatives[0].shape(), kMatrix.shape);
      ASSERT_EQ(pulled.derivatives[1].shape(), kVector.shape);
      for (std::int64_t e = 0; e < 3; ++e)
        EXPECT_NEAR(pulled.derivatives[1].at(e), 3 * J.blocks[0][1].at(e) - 2 * J.blocks[0][1].at(3 + e),
                    1e-14);
    }
}

TEST(DerivativeApi, SeveralDirectionsHaveALeadingAxis) {
  const JacobianResult J =
      jacobian(kLayer, {{"A", kMatrix}, {"x", kVector}}, {.wrt = {"x"}})({matrix(), vector()});
  const Tensor rows = Tensor::of<double>({4, 2}, {1, 0, 0, 1, 2, 3, -1, 1});
  const Tensor columns = Tensor::of<double>({2, 3}, {1, 0, 0, 0, 1, 2});
  for (const char* backend : kBackends) {
    const Derivative MJ =
        vjp(kLayer, {{"A", kMatrix}, {"x", kVector}}, {.wrt = {"x"}, .backend = backend, .directions = 4});
    const Tensor pulled = MJ({matrix(), vector()}, {rows}).derivatives[0];
    ASSERT_EQ(pulled.shape(), (Shape{4, 3}));
    for (std::int64_t d = 0; d < 4; ++d)
      for (std::int64_t e = 0; e < 3; ++e)
        EXPECT_NEAR(pulled.at(3 * d + e),
                    rows.at(2 * d) * J.blocks[0][0].at(e) + rows.at(2 * d + 1) * J.blocks[0][0].at(3 + e),
                    1e-14);
    const Derivative JM =
        jvp(kLayer, {{"A", kMatrix}, {"x", kVector}}, {.wrt = {"x"}, .backend = backend, .directions = 2});
    const Tensor pushed = JM({matrix(), vector()}, {columns}).derivatives[0];
    ASSERT_EQ(pushed.shape(), (Shape{2, 2}));
    for (std::int64_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(pushed.at(i), J.blocks[0][0].at(3 * i), 1e-14);
      EXPECT_NEAR(pushed.at(2 + i), J.blocks[0][0].at(3 * i + 1) + 2 * J.blocks[0][0].at(3 * i + 2), 1e-14);
    }
  }
}

TEST(DerivativeApi, GradientsHaveTheShapeOfTheArgument) {
  for (const char* backend : kBackends) {
    const Derivative g = gradient(kCubes, {{"x", kVector}}, {.backend = backend});
    EXPECT_THAT(result_names(g), ElementsAre("grad.x"));
    const DerivativeResult result = g({vector()});
    EXPECT_TRUE(result.outputs.empty());
    EXPECT_EQ(result.derivatives[0], Tensor::of<double>({3}, {3.0, 3.0, 12.0}));
    const DerivativeResult both =
        value_and_gradient(kCubes, {{"x", kVector}}, {.backend = backend})({vector()});
    EXPECT_EQ(both.outputs[0].at(0), 8);
    EXPECT_EQ(both.derivatives[0], result.derivatives[0]);
    // One number may have axes of extent 1.
    const auto kept = [](auto x) { return reshape(sum(x * x * x), {1, 1}); };
    EXPECT_EQ(gradient(kept, {{"x", kVector}}, {.backend = backend})({vector()}).derivatives[0],
              result.derivatives[0]);
  }
  EXPECT_THAT(message_of([] { gradient(kLayer, {{"A", kMatrix}, {"x", kVector}}); }),
              HasSubstr("a gradient is that of one number, but program 'main' gives f64[2]"));
  EXPECT_THAT(
      message_of([] { gradient([](auto x) { return std::tuple(sum(x), sum(x * x)); }, {{"x", kVector}}); }),
      HasSubstr("gives f64[], f64[]"));
}

TEST(DerivativeApi, HessiansOfNumbersAndOfTensors) {
  for (const char* backend : kBackends) {
    const Derivative H = value_and_hessian(kCubes, {{"x", kVector}}, {.backend = backend});
    EXPECT_THAT(result_names(H), ElementsAre("out.0", "jac.0.x", "hess.0.x.x"));
    const DerivativeResult result = H({vector()});
    EXPECT_EQ(result.outputs[0].at(0), 8);
    EXPECT_EQ(result.jacobian[0], Tensor::of<double>({3}, {3.0, 3.0, 12.0}));
    EXPECT_EQ(result.derivatives[0], Tensor::of<double>({3, 3}, {6.0, 0, 0, 0, -6.0, 0, 0, 0, 12.0}));
    // out + in + in: y_i = x_i^2 a, by x and a.
    const auto f = [](auto x, auto a) { return x * x * a; };
    const DerivativeResult blocks = hessian(f, {{"x", kVector}, {"a", {DType::f64, {}}}},
                                            {.backend = backend})({vector(), Tensor::scalar(5.0)});
    ASSERT_EQ(blocks.derivatives.size(), 4u);
    EXPECT_EQ(blocks.derivatives[0].shape(), (Shape{3, 3, 3}));
    for (std::int64_t e = 0; e < 27; ++e) EXPECT_EQ(blocks.derivatives[0].at(e), e % 13 == 0 ? 10 : 0);
    EXPECT_EQ(blocks.derivatives[1].shape(), (Shape{3, 3}));
    for (std::int64_t e = 0; e < 9; ++e)
      EXPECT_EQ(blocks.derivatives[1].at(e), e % 4 == 0 ? 2 * vector().at(e / 4) : 0);
    EXPECT_EQ(blocks.derivatives[3], Tensor::of<double>({3}, {0, 0, 0}));
  }
}

TEST(DerivativeApi, HessianVectorProducts) {
  for (const char* backend : kBackends)
    for (const char* outer : {"", "forward", "reverse"}) {
      const Derivative product =
          hvp(kCubes, {{"x", kVector}}, {.backend = backend, .directions = 2, .outer_order = outer});
      EXPECT_THAT(result_names(product), ElementsAre("hvp.0.x"));
      const Tensor v = Tensor::of<double>({2, 3}, {1, 0, 0, 1, 2, 3});
      const Tensor products = product({vector()}, {v}).derivatives[0];
      ASSERT_EQ(products.shape(), (Shape{2, 3}));
      for (std::int64_t e = 0; e < 6; ++e) EXPECT_EQ(products.at(e), 6 * vector().at(e % 3) * v.at(e));
    }
}

/// Outputs that are not differentiated come along, whatever their dtype.
TEST(DerivativeApi, AuxiliaryOutputs) {
  const auto f = [](auto x) { return std::tuple(x > 0.0, sum(x * x), x * 2.0); };
  const DerivativeOptions options{.of = {1}};
  const Derivative g = gradient(f, {{"x", kVector}}, options);
  EXPECT_THAT(result_names(g), ElementsAre("out.0", "out.2", "grad.x"));
  const DerivativeResult result = g({vector()});
  EXPECT_EQ(result.outputs[0], Tensor::of<bool>({3}, {true, false, true}));
  EXPECT_EQ(result.derivatives[0], Tensor::of<double>({3}, {2, -2, 4}));
  const Jacobian J = jacobian(f, {{"x", kVector}}, {.of = {2}});
  EXPECT_EQ(J({vector()}).outputs.size(), 3u);
  EXPECT_EQ(J({vector()}).blocks[0][0], Tensor::of<double>({3, 3}, {2.0, 0, 0, 0, 2.0, 0, 0, 0, 2.0}));
  EXPECT_THAT(message_of([&] { jacobian(f, {{"x", kVector}}, {.of = {3}}); }), HasSubstr("has 3 outputs"));
  EXPECT_THAT(message_of([&] { jacobian(f, {{"x", kVector}}, {.of = {1, 1}}); }), HasSubstr("named twice"));
}

TEST(DerivativeApi, BatchesAreOneByOne) {
  constexpr std::int64_t kExamples = 37;
  const auto f = [](auto x, auto w) { return sum(sin(x * w) * x); };
  Tensor xs(TensorType{DType::f64, {kExamples, 3}}), vs(TensorType{DType::f64, {kExamples, 3}});
  for (std::int64_t e = 0; e < 3 * kExamples; ++e) {
    xs.set(e, std::sin(1.0 + static_cast<double>(e)));
    vs.set(e, std::cos(static_cast<double>(e)));
  }
  const Tensor w = vector();
  const auto row = [](const Tensor& all, std::int64_t k) {
    return Tensor::of<double>({3}, {all.at(3 * k), all.at(3 * k + 1), all.at(3 * k + 2)});
  };
  for (const char* backend : kBackends)
    for (DerivativeKind kind : {DerivativeKind::jvp, DerivativeKind::vjp, DerivativeKind::gradient,
                                DerivativeKind::hessian, DerivativeKind::hvp}) {
      SCOPED_TRACE(std::string(backend) + " kind " + std::to_string(static_cast<int>(kind)));
      const Argument arguments[] = {{"x", kVector}, {"w", kVector}};
      const DerivativeOptions options{.wrt = {"x"}, .backend = backend, .batch = kExamples, .shared = {"w"}};
      const Derivative d = derivative_of_function(kind, detail::pack_function<2>(f), arguments, options);
      EXPECT_TRUE(d.is_shared(1));
      if (std::string(backend) == "reference") {
        EXPECT_FALSE(d.vectorises_examples());
      }
      std::vector<Tensor> in{xs, w};
      Tensor us(TensorType{DType::f64, {kExamples}});
      for (std::int64_t k = 0; k < kExamples; ++k) us.set(k, 1 + static_cast<double>(k));
      if (d.argument_count() == 3) in.push_back(kind == DerivativeKind::vjp ? us : vs);
      const DerivativeResult all = d.run_batch(in);
      for (std::int64_t k = 0; k < kExamples; ++k) {
        std::vector<Tensor> one{row(xs, k), w};
        if (d.argument_count() == 3)
          one.push_back(kind == DerivativeKind::vjp ? Tensor::scalar(us.at(k)) : row(vs, k));
        const DerivativeResult single = d(one);
        const Tensor &a = all.derivatives[0], &b = single.derivatives[0];
        ASSERT_EQ(a.element_count(), kExamples * b.element_count());
        for (std::int64_t e = 0; e < b.element_count(); ++e)
          ASSERT_NEAR(a.at(k * b.element_count() + e), b.at(e), 1e-13 * (1 + std::abs(b.at(e))));
      }
    }
}

TEST(DerivativeApi, SparseHessians) {
  const auto f = [](auto x) {  // a chain: tridiagonal
    const auto left = slice(x, {0}, {5}), right = slice(x, {1}, {6});
    return sum(left * left * right);
  };
  const TensorType type{DType::f64, {6}};
  const Tensor x = Tensor::of<double>({6}, {1, 2, 3, 4, 5, 6});
  for (const char* outer : {"forward", "reverse"}) {
    const Tensor dense = hessian(f, {{"x", type}}, {.outer_order = outer})({x}).derivatives[0];
    const Derivative H = hessian(f, {{"x", type}}, {.format = BlockFormat::coo, .outer_order = outer});
    const SparsePattern pattern = H.pattern(0);
    EXPECT_LE(pattern.entry_count(), 16);
    const Tensor entries = H({x}).derivatives[0];
    ASSERT_EQ(H.result_type(0), entries.type());
    Tensor again(dense.type());
    for (std::size_t e = 0; e < pattern.rows.size(); ++e)
      again.set(6 * pattern.rows[e] + pattern.columns[e], entries.at(static_cast<std::int64_t>(e)));
    EXPECT_EQ(again, dense);
    // And a batch of two: [2, nnz], the same positions.
    const Tensor both =
        H.run_batch({Tensor::of<double>({2, 6}, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6})}).derivatives[0];
    ASSERT_EQ(both.shape(), (Shape{2, pattern.entry_count()}));
    for (std::int64_t e = 0; e < both.element_count(); ++e)
      EXPECT_EQ(both.at(e), entries.at(e % pattern.entry_count()));
  }
  EXPECT_THAT(message_of([&] { jvp(f, {{"x", type}}, {.format = BlockFormat::coo}); }),
              HasSubstr("sparse form, not those of jvp"));
  const Derivative g = gradient(f, {{"x", type}});
  EXPECT_THAT(message_of([&] { g.pattern(0); }), HasSubstr("'grad.x' has no pattern"));
}

TEST(DerivativeApi, RunsOnSpans) {
  const Derivative g = value_and_gradient(kCubes, {{"x", {DType::f32, {2}}}});
  const std::vector<float> x{2.0f, 3.0f};
  std::vector<float> value(1), gradient(2);
  const std::span<const float> arguments[] = {x};
  const std::span<float> results[] = {value, gradient};
  g.run<float>(arguments, results);
  EXPECT_EQ(value[0], 35.0f);
  EXPECT_EQ(gradient[1], 27.0f);
  const std::span<float> one[] = {value};
  EXPECT_THAT(message_of([&] { g.run<float>(arguments, one); }), HasSubstr("wants 2 result spans, got 1"));
  const std::vector<double> wide(2);
  const std::span<const double> wide_arguments[] = {wide};
  std::vector<double> a(1), b(2);
  const std::span<double> wide_results[] = {a, b};
  EXPECT_THAT(message_of([&] { g.run<double>(wide_arguments, wide_results); }), HasSubstr("'x' is f32[2]"));
}

/// How often an op stands in the program that runs.
int count_ops(const std::string& text, const std::string& op) {
  const Program program = program_from_text(text);
  int count = 0;
  for (std::uint32_t i = 0; i < program.size(); ++i) count += program.op(Value{i}).name.value == op;
  return count;
}

TEST(DerivativeApi, TheFunctionIsEvaluatedOnce) {
  const auto f = [](auto x) { return sum(exp(sin(x)) * tanh(x)); };
  const std::string both = value_and_gradient(f, {{"x", kVector}}).program_text();
  const std::string jacobian_too = value_and_jacobian(f, {{"x", kVector}}).program_text();
  const std::string pushed = jvp(f, {{"x", kVector}}).program_text();
  for (const char* op : {"exp", "sin", "tanh"}) {
    EXPECT_EQ(count_ops(both, op), 1) << both;
    EXPECT_EQ(count_ops(jacobian_too, op), 1) << jacobian_too;
    EXPECT_EQ(count_ops(pushed, op), 1) << pushed;
  }
  // Without the value nothing is computed that only it needs.
  EXPECT_EQ(count_ops(gradient([](auto x) { return sum(sinh(x)); }, {{"x", kVector}}).program_text(), "sinh"),
            0);
}

/// Of two blocks that are each other's transposed, one is computed.
TEST(DerivativeApi, HessianBlocksAreComputedOnce) {
  const auto f = [](auto x, auto y) { return sum(exp(x * y)); };
  const Argument arguments[] = {{"x", kVector}, {"y", kVector}};
  const Derivative both = hessian(f, arguments);
  const DerivativeResult result = both({vector(), vector()});
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 3; ++j)
      EXPECT_EQ(result.derivatives[1].at(3 * i + j), result.derivatives[2].at(3 * j + i));
  const Derivative by_x = hessian(f, arguments, {.wrt = {"x"}}), by_y = hessian(f, arguments, {.wrt = {"y"}});
  EXPECT_LT(both.cost().folded_multiplications,
            by_x.cost().folded_multiplications + by_y.cost().folded_multiplications + 9);
}

/// No argument to differentiate by: nothing comes out, and nothing breaks.
TEST(DerivativeApi, FunctionsWithoutFloatingArguments) {
  const auto f = [](auto n) { return convert(n, DType::f64); };
  const TensorType integers{DType::i32, {2}};
  const Tensor n = Tensor::of<std::int32_t>({2}, {3, 4});
  EXPECT_EQ(jvp(f, {{"n", integers}})({n}).derivatives[0], Tensor::of<double>({2}, {0.0, 0.0}));
  EXPECT_TRUE(vjp(f, {{"n", integers}})({n}, {Tensor::of<double>({2}, {1.0, 1.0})}).derivatives.empty());
  EXPECT_TRUE(hessian(f, {{"n", integers}})({n}).derivatives.empty());
}

TEST(DerivativeApi, OptionsThatAKindDoesNotHave) {
  EXPECT_THAT(message_of([] { gradient(kCubes, {{"x", kVector}}, {.directions = 2}); }),
              HasSubstr("only jvp, vjp and hvp have them, not gradient"));
  EXPECT_THAT(message_of([] { jvp(kCubes, {{"x", kVector}}, {.directions = -1}); }),
              HasSubstr("directions is -1"));
  EXPECT_THAT(message_of([] { vjp(kCubes, {{"x", kVector}}, {.outer_order = "forward"}); }),
              HasSubstr("only hessian and hvp differentiate twice, not vjp"));
  EXPECT_THAT(message_of([] { hessian(kCubes, {{"x", kVector}}, {.outer_order = "backward"}); }),
              HasSubstr("unknown order 'backward'"));
  EXPECT_THAT(message_of([] { hessian(kCubes, {{"x", {DType::f64, {100}}}}, {.memory_limit = 1000}); }),
              HasSubstr("1000"));
  const Derivative forward = jvp(kCubes, {{"x", kVector}});
  EXPECT_THAT(message_of([&] { forward({vector()}); }), HasSubstr("2 arguments"));
  EXPECT_THAT(message_of([&] { forward({vector()}, {Tensor::scalar(1.0)}); }), HasSubstr("tangent.x"));
}

TEST(DerivativeApi, OrdersAreThoseOfTheFunctionAndOfTheJacobiansProgram) {
  const Derivative H = hessian(kCubes, {{"x", kVector}}, {.order = "forward", .outer_order = "reverse"});
  EXPECT_EQ(H.order(), (std::vector<int>{1, 2}));
  EXPECT_FALSE(H.outer_order().empty());
  EXPECT_TRUE(gradient(kCubes, {{"x", kVector}}).outer_order().empty());
}

}  // namespace
}  // namespace loipe
