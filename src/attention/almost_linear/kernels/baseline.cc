// SPDX-License-Identifier: Apache-2.0
// Vectors of 16 bytes and the instructions that every CPU of the architecture has.
#define LOIPE_ALMOST_LINEAR_KERNELS baseline_kernels
#define LOIPE_VECTOR_BYTES 16
#define LOIPE_LANE_ROWS 5
#define LOIPE_TOKEN_ROWS 8
#define LOIPE_TOKEN_ROWS_2 4
#include "attention/almost_linear/kernels/table.inc"
