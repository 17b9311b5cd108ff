// SPDX-License-Identifier: Apache-2.0
// Vectors of 16 bytes and the instructions that every CPU of the architecture has.
#define LOIPE_KERNELS baseline_kernels
#define LOIPE_KERNELS_NAME "baseline"
#define LOIPE_VECTOR_BYTES 16
#define LOIPE_TILE_ROWS 4
#include "backends/cpu/kernels/table.inc"
