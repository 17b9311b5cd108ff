// SPDX-License-Identifier: Apache-2.0
// AVX2 with FMA: up to 12 of the 16 registers are sums.
#define LOIPE_ALMOST_LINEAR_KERNELS avx2_kernels
#define LOIPE_VECTOR_BYTES 32
#define LOIPE_LANE_ROWS 6
#define LOIPE_TOKEN_ROWS 12
#define LOIPE_TOKEN_ROWS_2 6
#include "attention/almost_linear/kernels/table.inc"
