// SPDX-License-Identifier: Apache-2.0
// Vectors of 16 bytes and the instructions that every CPU of the architecture has.
#define LOIPE_CLUSTER_KERNELS baseline_cluster_kernels
#define LOIPE_VECTOR_BYTES 16
#define LOIPE_TILE_ROWS 4
#define LOIPE_TILE_VECTORS 2
#include "attention/clustered/kernels/table.inc"
