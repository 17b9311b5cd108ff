// SPDX-License-Identifier: Apache-2.0
// AVX-512 (F, DQ, BW, VL): up to 24 of the 32 registers are sums.
#define LOIPE_ALMOST_LINEAR_KERNELS avx512_kernels
#define LOIPE_VECTOR_BYTES 64
#define LOIPE_LANE_ROWS 12
#define LOIPE_TOKEN_ROWS 16
#define LOIPE_TOKEN_ROWS_2 12
#include "attention/almost_linear/kernels/table.inc"
