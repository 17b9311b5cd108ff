// SPDX-License-Identifier: Apache-2.0
// Memory as an input, and the same bits again and again.
#include <cmath>

#include "every_way.h"

namespace loipe::testing {
namespace {

Tensor waves(const Shape& shape, double phase) {
  Tensor tensor(TensorType{DType::f32, shape});
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, 0.3 * std::sin(1.7 * static_cast<double>(i) + phase));
  return tensor;
}

TEST(Users, U5_AMemoryLimitIsKeptWithTheSameBits) {
  constexpr std::int64_t batch = 64, in = 32, hidden = 96, out = 1000, layers = 10;
  const auto mlp = [](auto X) {
    Traced x = X;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const Shape shape{layer == 0 ? in : hidden, layer == layers - 1 ? out : hidden};
      x = tanh(matmul(x, constant(waves(shape, static_cast<double>(layer)))));
    }
    return x;
  };
  const Argument arguments[] = {{"X", {DType::f32, {batch, in}}}};
  const Tensor X = waves({batch, in}, 0.5);
  const auto run = [&](std::size_t limit) {
    const Jacobian J =
        jacobian(mlp, arguments, {.threads = 2, .memory_limit = limit, .format = BlockFormat::coo});
    if (limit > 0) {
      EXPECT_LE(J.peak_bytes(), limit);
    }
    EXPECT_EQ(J.block_pattern(0, 0).entry_count(), batch * out * in);
    return J({X}).blocks[0][0];
  };
  const Tensor unlimited = run(0);
  EXPECT_EQ(run(64'000'000), unlimited);
  EXPECT_EQ(run(20'000'000), unlimited);
  EXPECT_THROW(run(1'000'000), ResourceError);
}

TEST(Users, U83_AttentionGradientsHaveTheSameBitsEveryTime) {
  constexpr std::int64_t n = 96, d = 16;
  const auto attention = [](auto Q, auto K, auto V) {
    const Traced scores = matmul(Q, transpose(K)) * 0.25;
    return matmul(softmax(scores), V);
  };
  const TensorType type{DType::f32, {n, d}};
  const Argument arguments[] = {{"Q", type}, {"K", type}, {"V", type}};
  const Tensor Q = waves({n, d}, 0), K = waves({n, d}, 1), V = waves({n, d}, 2), G = waves({n, d}, 3);
  std::vector<Tensor> first;
  for (const int threads : {1, 2, 8}) {
    const Derivative gradients = vjp(attention, arguments, {.threads = threads});
    for (int repetition = 0; repetition < 10; ++repetition) {
      const std::vector<Tensor> found = gradients({Q, K, V}, {G}).derivatives;
      if (first.empty()) first = found;
      ASSERT_EQ(found, first) << threads << " threads, repetition " << repetition;
    }
  }
}

}  // namespace
}  // namespace loipe::testing
