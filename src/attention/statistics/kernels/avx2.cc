// SPDX-License-Identifier: Apache-2.0
// AVX2 and FMA; also for CPUs with AVX-512, whose vectors are wider than a group of kPad columns.
#define LOIPE_MOMENT_KERNELS avx2_moment_kernels
#define LOIPE_VECTOR_BYTES 32
#include "attention/statistics/kernels/moments.inc"
