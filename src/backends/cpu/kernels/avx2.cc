// SPDX-License-Identifier: Apache-2.0
// AVX2 and FMA. A tile of 6 rows and 2 vectors keeps 12 of the 16 registers as sums.
#define LOIPE_KERNELS avx2_kernels
#define LOIPE_KERNELS_NAME "avx2"
#define LOIPE_VECTOR_BYTES 32
#define LOIPE_TILE_ROWS 6
#include "backends/cpu/kernels/table.inc"
