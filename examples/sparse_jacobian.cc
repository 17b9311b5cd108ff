// SPDX-License-Identifier: Apache-2.0
#include <loipe/loipe.h>

#include <cstdio>

int main() {
  using loipe::BlockFormat, loipe::DType;
  auto f = [](auto x) {  // squared differences of neighbours: two diagonals
    auto left = loipe::slice(x, {0}, {3}), right = loipe::slice(x, {1}, {4});
    return loipe::square(right - left);
  };
  auto J = loipe::jacobian(f, {{"x", {DType::f64, {4}}}}, {.format = BlockFormat::coo});

  // The pattern belongs to the function: a solver analyses it once.
  auto rows = loipe::csr_indices(J.block_pattern(0, 0));  // indptr [4], indices [6], i32
  // A run writes values alone, in the pattern's order.
  auto values = J({loipe::Tensor::of<double>({4}, {1, 2, 4, 7})}).blocks[0][0];  // [6]
  for (int row = 0; row < 3; ++row)
    for (auto e = static_cast<int>(rows.indptr.at(row)); e < rows.indptr.at(row + 1); ++e)
      std::printf("(%d, %g) %g\n", row, rows.indices.at(e), values.at(e));
}
