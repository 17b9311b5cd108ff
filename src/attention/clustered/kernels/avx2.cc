// SPDX-License-Identifier: Apache-2.0
// AVX2 and FMA: 4 rows and 3 vectors, 12 of the 16 registers are sums.
#define LOIPE_CLUSTER_KERNELS avx2_cluster_kernels
#define LOIPE_VECTOR_BYTES 32
#define LOIPE_TILE_ROWS 4
#define LOIPE_TILE_VECTORS 3
#include "attention/clustered/kernels/table.inc"
