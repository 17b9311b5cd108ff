// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <loipe/loipe.h>

#include <cmath>
#include <functional>
#include <thread>

namespace loipe {
namespace {

using ::testing::HasSubstr;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

const auto kProduct = [](auto x, auto y) { return sin(x) * y; };
const TensorType kVector{DType::f64, {3}};

TEST(JacobianApi, BlocksHaveShapeOutputPlusArgument) {
  for (const char* backend : {"reference", "jit"}) {
    const Jacobian J = jacobian(kProduct, {{"x", kVector}, {"y", kVector}}, {.backend = backend});
    const Tensor x = Tensor::of<double>({3}, {0.1, 0.2, 0.3}), y = Tensor::of<double>({3}, {1.0, 2.0, 3.0});
    const JacobianResult result = J({x, y});
    EXPECT_EQ(J.block_type(0, 1), (TensorType{DType::f64, {3, 3}}));
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t j = 0; j < 3; ++j) {
        EXPECT_NEAR(result.blocks[0][0].at(3 * i + j), i == j ? std::cos(x.at(i)) * y.at(i) : 0, 1e-15)
            << backend;
        EXPECT_NEAR(result.blocks[0][1].at(3 * i + j), i == j ? std::sin(x.at(i)) : 0, 1e-15) << backend;
      }
  }
}

TEST(JacobianApi, WrtTakesNamesAndPositions) {
  const Jacobian by_name = jacobian(kProduct, {{"x", kVector}, {"y", kVector}}, {.wrt = {"y"}});
  const Jacobian by_position = jacobian(kProduct, {{"x", kVector}, {"y", kVector}}, {.wrt = {1, 0}});
  EXPECT_EQ(std::vector<std::size_t>(by_name.wrt().begin(), by_name.wrt().end()),
            std::vector<std::size_t>{1});
  EXPECT_EQ(by_position.wrt()[0], 1u);
  EXPECT_EQ(by_position.wrt()[1], 0u);
  EXPECT_THAT(
      message_of([] { jacobian(kProduct, {{"alpha", kVector}, {"y", kVector}}, {.wrt = {"alhpa"}}); }),
      HasSubstr("did you mean 'alpha'"));
  EXPECT_THAT(message_of([] { jacobian(kProduct, {{"x", kVector}, {"y", kVector}}, {.wrt = {2}}); }),
              HasSubstr("has 2 arguments"));
  EXPECT_THAT(message_of([] { jacobian(kProduct, {{"x", kVector}, {"y", kVector}}, {.wrt = {0, 0}}); }),
              HasSubstr("named twice"));
}

TEST(JacobianApi, SeveralResultsIncludingAnArgument) {
  const Jacobian J = jacobian([](auto x, auto y) { return std::tuple(x * y, x, exp(x), exp(x)); },
                              {{"x", {DType::f64, {}}}, {"y", {DType::f64, {}}}});
  const JacobianResult result = J({Tensor::scalar(2.0), Tensor::scalar(5.0)});
  EXPECT_EQ(result.blocks[0][0].at(0), 5);
  EXPECT_EQ(result.blocks[0][1].at(0), 2);
  EXPECT_EQ(result.blocks[1][0].at(0), 1);
  EXPECT_EQ(result.blocks[1][1].at(0), 0);
  EXPECT_NEAR(result.blocks[3][0].at(0), std::exp(2.0), 1e-14);
}

TEST(JacobianApi, RunsOnSpansWithoutTensors) {
  const Jacobian J = jacobian(kProduct, {{"x", {DType::f32, {2}}}, {"y", {DType::f32, {2}}}}, {.wrt = {"y"}});
  const std::vector<float> x{0.5f, 1.0f}, y{1.0f, 2.0f};
  std::vector<float> out(2), block(4);
  const std::span<const float> arguments[] = {x, y};
  const std::span<float> outputs[] = {out}, blocks[] = {block};
  J.run<float>(arguments, outputs, blocks);
  EXPECT_NEAR(block[0], std::sin(0.5), 1e-6);
  EXPECT_EQ(block[1], 0.0f);
  std::vector<float> small(3);
  const std::span<float> wrong[] = {small};
  EXPECT_THAT(message_of([&] { J.run<float>(arguments, outputs, wrong); }), HasSubstr("16"));
  const std::vector<double> xd(2), yd(2);
  std::vector<double> outd(2), blockd(4);
  const std::span<const double> argumentsd[] = {xd, yd};
  const std::span<double> outputsd[] = {outd}, blocksd[] = {blockd};
  EXPECT_THAT(message_of([&] { J.run<double>(argumentsd, outputsd, blocksd); }), HasSubstr("f32[2]"));
}

TEST(JacobianApi, ManyThreadsShareOneCompiledObject) {
  const Jacobian J = jacobian(kProduct, {{"x", kVector}, {"y", kVector}});
  std::vector<std::thread> threads;
  std::vector<int> right(4, 0);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        const Tensor x = Tensor::of<double>({3}, {0.1 * t, 0.2, 0.3}),
                     y = Tensor::of<double>({3}, {1.0, 2.0, 3.0});
        right[static_cast<std::size_t>(t)] +=
            std::abs(J({x, y}).blocks[0][1].at(0) - std::sin(0.1 * t)) < 1e-15;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(right, ::testing::Each(50));
}

TEST(JacobianApi, MistakesAreUserErrors) {
  EXPECT_THAT(message_of([] { jacobian([](auto x) { return x > 0.0 ? x : -x; }, {{"x", kVector}}); }),
              HasSubstr("select"));
  EXPECT_THAT(
      message_of([] { jacobian([](auto x) { return x; }, {{"x", {DType::i32, {3}}}}, {.wrt = {"x"}}); }),
      HasSubstr("floating"));
  EXPECT_THAT(message_of([] { jacobian([](auto x) { return x > 0.0; }, {{"x", kVector}}); }),
              HasSubstr("only floating outputs"));
  EXPECT_THAT(message_of([] { jacobian(kProduct, {{"x", kVector}, {"y", kVector}}, {.order = "fastest"}); }),
              HasSubstr("unknown order"));
  EXPECT_THAT(message_of([] { jacobian(kProduct, {{"x", kVector}, {"y", kVector}}, {.backend = "gpu"}); }),
              HasSubstr("gpu"));
  EXPECT_THAT(message_of([] { jacobian(kProduct, {{"x", kVector}, {"y", kVector}}, {.threads = -1}); }),
              HasSubstr("threads"));
  EXPECT_THAT(message_of([] { jacobian(kProduct, {{"x", kVector}, {"x", kVector}}); }), HasSubstr("'x'"));
  const Jacobian J = jacobian(kProduct, {{"x", kVector}, {"y", kVector}});
  EXPECT_THAT(message_of([&] { J({Tensor::scalar(1.0), Tensor::scalar(1.0)}); }), HasSubstr("f64[3]"));
  EXPECT_THAT(message_of([&] { J({Tensor::scalar(1.0)}); }), HasSubstr("2 arguments"));
}

TEST(JacobianApi, AMemoryLimitIsRefusedWithTheNumberNeeded) {
  const TensorType large{DType::f64, {300}};
  EXPECT_THAT(message_of([&] { jacobian(kProduct, {{"x", large}, {"y", large}}, {.memory_limit = 1000}); }),
              HasSubstr("1000"));
}

TEST(JacobianApi, ProgramsInTextualForm) {
  const Jacobian J = jacobian_of_program("program p(%x: f64[]) {\n  %1 = sin(%x) : f64[]\n  return %1\n}\n");
  EXPECT_NEAR(J({Tensor::scalar(1.0)}).blocks[0][0].at(0), std::cos(1.0), 1e-15);
  EXPECT_THAT(J.program_text(), HasSubstr("cos"));
}

TEST(JacobianApi, ZeroSizedAxes) {
  const TensorType empty{DType::f64, {0, 3}};
  const Jacobian J = jacobian([](auto x) { return sum(x, {0}) * 2.0; }, {{"x", empty}});
  const JacobianResult result = J({Tensor(empty)});
  EXPECT_EQ(result.blocks[0][0].shape(), (Shape{3, 0, 3}));
  EXPECT_EQ(result.outputs[0], Tensor::of<double>({3}, {0.0, 0.0, 0.0}));
}

}  // namespace
}  // namespace loipe
