// SPDX-License-Identifier: Apache-2.0
// AVX-512 (F, DQ, BW, VL). A tile of 8 rows and 2 vectors has 16 independent sums,
// twice what hides the latency of two FMA units, and divides the usual extents.
#define LOIPE_KERNELS avx512_kernels
#define LOIPE_KERNELS_NAME "avx512"
#define LOIPE_VECTOR_BYTES 64
#define LOIPE_TILE_ROWS 8
#include "backends/cpu/kernels/table.inc"
