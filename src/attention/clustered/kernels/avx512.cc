// SPDX-License-Identifier: Apache-2.0
// AVX-512 (F, DQ, BW, VL): 8 rows and 2 vectors, 16 of the 32 registers are sums.
#define LOIPE_CLUSTER_KERNELS avx512_cluster_kernels
#define LOIPE_VECTOR_BYTES 64
#define LOIPE_TILE_ROWS 8
#define LOIPE_TILE_VECTORS 2
#include "attention/clustered/kernels/table.inc"
