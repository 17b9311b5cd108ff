// SPDX-License-Identifier: Apache-2.0
#include <loipe/loipe.h>

#include <cstdio>
#include <vector>

int main() {
  using loipe::BatchLayout, loipe::DType;
  auto f = [](auto x, auto rate) { return loipe::exp(-rate * x) * x; };
  // Vector code over examples: x has an axis of examples, all of them share the rate.
  constexpr std::int64_t B = 1000, stride = 1032;
  auto J = loipe::jacobian(f, {{"x", {DType::f64, {2}}}, {"rate", {DType::f64, {}}}},
                           {.wrt = {"x"}, .batch = B, .shared = {"rate"}});

  // Tensors have a leading axis of examples: x [B,2], block [B,2,2].
  auto result =
      J.run_batch({loipe::Tensor(loipe::TensorType{DType::f64, {B, 2}}), loipe::Tensor::scalar(0.5)});
  std::printf("%g\n", result.blocks[0][0].at(0));

  // The caller's memory, one row of examples per element; a run allocates nothing.
  std::vector<double> x(2 * stride, 1.0), rate{0.5}, value(2 * stride), block(4 * stride);
  const std::span<const double> arguments[] = {x, rate};
  const std::span<double> outputs[] = {value}, blocks[] = {block};
  const auto rows = BatchLayout::structure_of_arrays;
  J.run_batch<double>(B, arguments, outputs, blocks, {rows, rows, stride, stride});
  std::printf("%.4f %.4f\n", block[0], block[stride]);
}
