// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <cstdint>

#include "driver/fma_loop.h"

// Arithmetic that a machine can do, measured now, in 1e9 operations per second. Each
// measurement takes about `seconds`.

namespace loipe {

/// Multiply-adds on registers, on that many threads side by side.
double fma_gflops(const FmaLoop& loop, int threads, double seconds);

/// `count` products of square matrices.
struct ProductSize {
  std::int64_t count = 1;
  std::int64_t rows = 1;
};

/// Through the fast back end, the way any program runs.
double product_gflops(ProductSize size, DType dtype, int threads, double seconds);

}  // namespace loipe
