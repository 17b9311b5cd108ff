// SPDX-License-Identifier: Apache-2.0
// What users of other tools asked for or fell over, as tests: each is named after the
// number under which the project lists the request. Times became counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <loipe/loipe.h>

#include <cmath>
#include <numeric>
#include <thread>

#include "base/rng.h"
#include "driver/derivative.h"
#include "ir/interpreter.h"
#include "ops/emit.h"

namespace loipe {
namespace {

using ::testing::ElementsAre;

constexpr const char* kBackends[] = {"reference", "jit"};
const auto kCubes = [](auto x) { return sum(x * x * x); };
const auto kLayer = [](auto A, auto x) { return tanh(matmul(A, x)); };

Tensor filled(const Shape& shape, const std::function<double(std::int64_t)>& value) {
  Tensor tensor(TensorType{DType::f64, shape});
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, value(i));
  return tensor;
}

/// One gradient for each row: 2x, at the price of one product an element.
TEST(UserTests, U8_GradientOfSquaresPerRow) {
  constexpr std::int64_t n = 1000;
  const Derivative g = gradient([](auto x) { return sum(x * x); }, {{"x", {DType::f64, {n}}}}, {.batch = n});
  const Tensor x = filled({n, n}, [](std::int64_t i) { return std::sin(static_cast<double>(i)); });
  const Tensor twice = g.run_batch({x}).derivatives[0];
  ASSERT_EQ(twice.shape(), x.shape());
  for (std::int64_t i = 0; i < n * n; ++i) ASSERT_EQ(twice.at(i), 2 * x.at(i));
  EXPECT_LE(g.cost().folded_multiplications, n);
  EXPECT_LE(g.cost().folded_additions, n);
}

/// hessian takes the options of jacobian: the same values under every limit that it accepts.
TEST(UserTests, U10_HessianUnderEveryMemoryLimit) {
  const Tensor x = Tensor::of<double>({3}, {1.0, 2.0, 3.0});
  const Tensor expected = Tensor::of<double>({3, 3}, {6.0, 0, 0, 0, 12.0, 0, 0, 0, 18.0});
  for (const char* backend : kBackends) {
    bool is_accepted = false;
    for (std::size_t limit = 8; limit <= 1 << 20; limit += limit / 8) {
      try {
        const Derivative H =
            hessian(kCubes, {{"x", {DType::f64, {3}}}}, {.backend = backend, .memory_limit = limit});
        EXPECT_LE(H.peak_bytes(), limit);
        EXPECT_EQ(H({x}).derivatives[0], expected);
        is_accepted = true;
      } catch (const ResourceError&) {
        EXPECT_FALSE(is_accepted) << "a larger limit is refused: " << limit;
      }
    }
    EXPECT_TRUE(is_accepted);
  }
}

/// The interpreter is the fallback of everything; its runs obey the limit too.
TEST(UserTests, U11_TheLimitHoldsOnTheFallbackPath) {
  const auto f = [](auto x) { return tanh(matmul(x, transpose(x))); };
  const TensorType type{DType::f64, {12, 12}};
  for (const char* backend : kBackends) {
    const std::size_t peak = jacobian(f, {{"x", type}}, {.backend = backend}).peak_bytes();
    EXPECT_LE(jacobian(f, {{"x", type}}, {.backend = backend, .memory_limit = peak}).peak_bytes(), peak);
    // A block alone has 12^4 numbers.
    EXPECT_THROW(jacobian(f, {{"x", type}}, {.backend = backend, .memory_limit = 8 * 12 * 12 * 12 * 12}),
                 ResourceError);
  }
}

TEST(UserTests, U59_BatchJacobianHasOneBlockPerExample) {
  const Tensor A = filled({3, 4}, [](std::int64_t i) { return 0.1 * static_cast<double>(i) - 0.5; });
  const Tensor x = filled({8, 4}, [](std::int64_t i) { return std::cos(static_cast<double>(i)); });
  const Jacobian J = jacobian(kLayer, {{"A", {DType::f64, {3, 4}}}, {"x", {DType::f64, {4}}}},
                              {.wrt = {"x"}, .batch = 8, .shared = {"A"}});
  const Tensor block = J.run_batch({A, x}).blocks[0][0];
  ASSERT_EQ(block.shape(), (Shape{8, 3, 4}));
  for (std::int64_t b = 0; b < 8; ++b)
    for (std::int64_t i = 0; i < 3; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < 4; ++j) sum += A.at(4 * i + j) * x.at(4 * b + j);
      const double slope = 1 - std::tanh(sum) * std::tanh(sum);
      for (std::int64_t j = 0; j < 4; ++j)
        EXPECT_NEAR(block.at(12 * b + 4 * i + j), slope * A.at(4 * i + j), 1e-14);
    }
}

TEST(UserTests, U61_BatchedHessianIsTheInterpretersBitForBit) {
  const Tensor x = filled({4, 3}, [](std::int64_t i) { return 0.3 * static_cast<double>(i) - 1.7; });
  Tensor results[2];
  for (int k = 0; k < 2; ++k) {
    const Derivative H = hessian(kCubes, {{"x", {DType::f64, {3}}}}, {.backend = kBackends[k], .batch = 4});
    results[k] = H.run_batch({x}).derivatives[0];
    ASSERT_EQ(results[k].shape(), (Shape{4, 3, 3}));
    for (std::int64_t e = 0; e < 36; ++e)
      EXPECT_NEAR(results[k].at(e), e % 9 % 4 == 0 ? 6 * x.at(e / 9 * 3 + e % 9 / 4) : 0, 1e-14);
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(UserTests, U62_AuxiliaryOutputsHaveTheSameShapesOnEveryBackEnd) {
  const auto f = [](auto x) { return std::tuple(sum(x * x), std::pair(x * 3.0, x > 1.0)); };
  for (const char* backend : kBackends) {
    const Jacobian J = jacobian(f, {{"x", {DType::f64, {2, 3}}}}, {.backend = backend, .of = {0}});
    const JacobianResult result = J({filled({2, 3}, [](std::int64_t i) { return static_cast<double>(i); })});
    ASSERT_EQ(result.outputs.size(), 3u);
    EXPECT_EQ(result.outputs[0].shape(), Shape{});
    EXPECT_EQ(result.outputs[1].type(), (TensorType{DType::f64, {2, 3}}));
    EXPECT_EQ(result.outputs[2].type(), (TensorType{DType::boolean, {2, 3}}));
    ASSERT_EQ(result.blocks.size(), 1u);
    EXPECT_EQ(result.blocks[0][0].shape(), (Shape{2, 3}));
    EXPECT_EQ(result.blocks[0][0].at(5), 10);
  }
}

/// Physics-informed networks: second derivatives at many points by one call.
TEST(UserTests, U64_SecondDerivativesAtManyPointsInOneCall) {
  constexpr std::int64_t N = 100;
  const TensorType number{DType::f64, {}};
  const Derivative H =
      hessian([](auto r, auto z) { return sin(r) * z * z; }, {{"r", number}, {"z", number}}, {.batch = N});
  const Tensor r = filled({N}, [](std::int64_t i) { return 0.05 * static_cast<double>(i); });
  const Tensor z = filled({N}, [](std::int64_t i) { return 2 - 0.03 * static_cast<double>(i); });
  const DerivativeResult result = H.run_batch({r, z});
  ASSERT_EQ(result.derivatives.size(), 4u);
  for (std::int64_t i = 0; i < N; ++i) {
    EXPECT_NEAR(result.derivatives[0].at(i), -std::sin(r.at(i)) * z.at(i) * z.at(i), 1e-14);
    EXPECT_NEAR(result.derivatives[1].at(i), 2 * std::cos(r.at(i)) * z.at(i), 1e-14);
    EXPECT_NEAR(result.derivatives[3].at(i), 2 * std::sin(r.at(i)), 1e-14);
  }
}

TEST(UserTests, U65_RowsOfTheJacobianAreNotSummed) {
  const auto f = [](auto q) { return concatenate({q * 2.0, q * q * 4.0}, 0); };
  const Tensor q = Tensor::of<double>({2}, {1.0, 2.0});
  for (const char* backend : kBackends)
    EXPECT_EQ(jacobian(f, {{"q", {DType::f64, {2}}}}, {.backend = backend})({q}).blocks[0][0],
              Tensor::of<double>({4, 2}, {2, 0, 0, 2, 8, 0, 0, 16}));
}

TEST(UserTests, U85_NoContributionIsLostForAnyNumberOfThreads) {
  constexpr std::int64_t n = 64;
  const auto f = [](auto x) { return sum(slice(x, {1}, {n}) * slice(x, {0}, {n - 1})); };
  const Tensor x = filled({n}, [](std::int64_t i) { return static_cast<double>(i) / 2; });
  const auto fan_out = [](auto s) { return broadcast_in_dim(s, {2000}, {}); };
  const Tensor ones = filled({2000}, [](std::int64_t) { return 1.0; });
  for (int threads : {1, 2, 8}) {
    const Tensor g = gradient(f, {{"x", {DType::f64, {n}}}}, {.threads = threads})({x}).derivatives[0];
    double total = 0;
    for (std::int64_t i = 0; i < n; ++i) total += g.at(i);
    EXPECT_EQ(total, 1984.5);
    EXPECT_THAT((std::vector{g.at(0), g.at(1), g.at(2), g.at(62), g.at(63)}), ElementsAre(0.5, 1, 2, 62, 31));
    const Derivative pull = vjp(fan_out, {{"s", {DType::f64, {}}}}, {.threads = threads});
    EXPECT_EQ(pull({Tensor::scalar(3.0)}, {ones}).derivatives[0].at(0), 2000);
  }
}

/// Eight functions of one number x, k of them products.
Derivative traced_function(int k, const std::string& backend) {
  const auto f = [k](auto x) {
    auto y = sin(x);
    for (int i = 0; i < k; ++i) y = y * x + exp(-y);
    return y;
  };
  return gradient(f, {{"x", {DType::f64, {}}}}, {.backend = backend, .threads = 1});
}

/// Tracing knows no global tape, and a compiled function no state of a run.
TEST(UserTests, U86_ThreadsTraceAndRunDifferentFunctions) {
  constexpr int kFunctions = 8, kRuns = 1000;
  const Tensor x = Tensor::scalar(0.7);
  std::vector<double> serial;
  std::vector<Derivative> shared;
  for (int k = 0; k < kFunctions; ++k) {
    shared.push_back(traced_function(k, "jit"));
    serial.push_back(shared.back()({x}).derivatives[0].at(0));
  }
  std::vector<int> right(kFunctions, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < kFunctions; ++t)
    threads.emplace_back([&, t] {
      for (int run = 0; run < kRuns; ++run) {
        const auto k = static_cast<std::size_t>((t + run) % kFunctions);
        // Traced anew now and then, on this thread, while others do the same.
        const bool is_new = run % 50 == t;
        const Derivative f = is_new ? traced_function(static_cast<int>(k), "jit") : shared[k];
        right[static_cast<std::size_t>(t)] += f({x}).derivatives[0].at(0) == serial[k];
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(right, ::testing::Each(kRuns));
}

TEST(UserTests, U29_SharedSubexpressionsAreNotUnrolled) {
  const auto f = [](auto x) {
    auto y = x;
    for (int i = 0; i < 60; ++i) y = y + y;
    return y;
  };
  for (const char* order : {"forward", "reverse", "markowitz"}) {
    const Jacobian J = jacobian(f, {{"x", {DType::f64, {}}}}, {.order = order});
    EXPECT_EQ(J({Tensor::scalar(1.0)}).blocks[0][0].at(0), 1152921504606846976.0);
    EXPECT_LE(J.order().size(), 61u);
    EXPECT_LE(J.cost().actual_multiplications, 60);
  }
}

/// sin(a x) chained: n operations.
Program chain(std::int64_t n) {
  Builder builder("chain");
  const Value x = builder.argument("x", {DType::f64, {}});
  Value y = x;
  for (std::int64_t i = 0; i < n; i += 2) y = ops::sin(builder, ops::mul(builder, y, x));
  return builder.finish({y});
}

std::size_t nodes_of_the_gradient(const Program& program) {
  DerivativeRequest request{.kind = DerivativeKind::gradient, .wrt = floating_arguments(program), .of = {0}};
  request.order = reverse_order(program);
  return compile_derivative(program, request, {}, false).compilation.optimised.size();
}

TEST(UserTests, U31_TheProgramOfALongChainGrowsWithItsLength) {
  const std::size_t at_1e4 = nodes_of_the_gradient(chain(10'000)),
                    at_1e5 = nodes_of_the_gradient(chain(100'000));
  EXPECT_LE(at_1e5, 10 * at_1e4 + 100);
  EXPECT_LE(at_1e4, 5 * 10'000u);
}

TEST(UserTests, U37_ReverseCodeIsAFewTimesThePrimal) {
  constexpr int kOps = 3000, kInputs = 103;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Rng rng(seed);
    Builder builder("dag");
    std::vector<Value> values;
    for (int i = 0; i < kInputs; ++i)
      values.push_back(builder.argument("x" + std::to_string(i), {DType::f64, {}}));
    const auto pick = [&] {
      return values[static_cast<std::size_t>(rng.below(static_cast<std::int64_t>(values.size())))];
    };
    for (int i = 0; i < kOps; ++i) {
      const Value a = pick(), b = pick();
      switch (rng.below(4)) {
        case 0: values.push_back(ops::sin(builder, a)); break;
        case 1: values.push_back(ops::add(builder, a, b)); break;
        case 2: values.push_back(ops::mul(builder, a, b)); break;
        default: values.push_back(ops::sub(builder, a, b));
      }
    }
    Value total = values.back();
    for (int i = 0; i < 200; ++i) total = ops::add(builder, total, pick());
    const Program program = builder.finish({total});
    EXPECT_LE(nodes_of_the_gradient(program), 8u * program.size()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace loipe
