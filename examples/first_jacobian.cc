// SPDX-License-Identifier: Apache-2.0
#include <loipe/loipe.h>

#include <cstdio>

int main() {
  using loipe::DType;
  auto f = [](auto A, auto x) {
    auto y = loipe::tanh(loipe::matmul(A, x));
    return y / loipe::sqrt(loipe::sum(y * y));
  };
  // Traced once, compiled once: J runs many times, from any number of threads.
  auto J = loipe::jacobian(f, {{"A", {DType::f64, {2, 3}}}, {"x", {DType::f64, {3}}}});

  auto A = loipe::Tensor::of<double>({2, 3}, {0.1, 0.2, 0.3, -0.4, 0.5, 0.6});
  auto x = loipe::Tensor::of<double>({3}, {1.0, -1.0, 2.0});
  auto result = J({A, x});
  const auto& dx = result.blocks[0][1];  // d f / d x, shape [2,3]
  for (int i = 0; i < 2; ++i)
    std::printf("%8.4f %8.4f %8.4f\n", dx.at(3 * i), dx.at(3 * i + 1), dx.at(3 * i + 2));
}
