// SPDX-License-Identifier: Apache-2.0
// Vectors of 16 bytes and the instructions that every CPU of the architecture has.
#define LOIPE_MOMENT_KERNELS baseline_moment_kernels
#define LOIPE_VECTOR_BYTES 16
#include "attention/statistics/kernels/moments.inc"
