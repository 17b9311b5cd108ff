// SPDX-License-Identifier: Apache-2.0
// AVX2 and FMA: 4 rows and 3 vectors, 12 of the 16 registers are sums.
#define LOIPE_SAMPLE_KERNELS avx2_sample_kernels
#define LOIPE_VECTOR_BYTES 32
#define LOIPE_TILE_ROWS 4
#define LOIPE_TILE_VECTORS 3
#include "attention/certificate/kernels/samples.inc"
