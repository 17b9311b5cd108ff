// SPDX-License-Identifier: Apache-2.0
// AVX-512: 8 rows and 2 vectors, 16 of the 32 registers are sums.
#define LOIPE_SAMPLE_KERNELS avx512_sample_kernels
#define LOIPE_VECTOR_BYTES 64
#define LOIPE_TILE_ROWS 8
#define LOIPE_TILE_VECTORS 2
#include "attention/certificate/kernels/samples.inc"
