// SPDX-License-Identifier: Apache-2.0
#include "driver/fma_loop.h"

#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace loipe {

namespace {

// A core starts up to two multiply-adds a cycle and each takes four or five cycles, so
// ten independent sums would do; twelve fit the 16 registers of AVX2.
constexpr int kSums = 12;

/// Makes the compiler believe that the sums are used.
template <class Vector>
void keep(Vector (&sums)[kSums]) {
  asm volatile("" : : "r"(&sums[0]) : "memory");
}

// One function per instruction set and dtype: the target attribute does not reach into
// templates or lambdas. The multiplier shrinks the sums to a fixed point, far from
// overflow and from slow subnormal numbers.
#define LOIPE_FMA_LOOP(name, instructions, Vector, broadcast, multiply_add)     \
  instructions void name(std::int64_t rounds) {                                 \
    Vector sums[kSums];                                                         \
    const Vector factor = broadcast(0.5F), term = broadcast(1.0F);              \
    for (int i = 0; i < kSums; ++i) sums[i] = broadcast(static_cast<float>(i)); \
    for (std::int64_t round = 0; round < rounds; ++round) {                     \
      _Pragma("GCC unroll 12") for (int i = 0; i < kSums; ++i) sums[i] =        \
          multiply_add(sums[i], factor, term);                                  \
    }                                                                           \
    keep(sums);                                                                 \
  }

#if defined(__x86_64__)
#define LOIPE_TARGET(name) __attribute__((target(name)))
LOIPE_FMA_LOOP(avx512_f32, LOIPE_TARGET("avx512f"), __m512, _mm512_set1_ps, _mm512_fmadd_ps)
LOIPE_FMA_LOOP(avx512_f64, LOIPE_TARGET("avx512f"), __m512d, _mm512_set1_pd, _mm512_fmadd_pd)
LOIPE_FMA_LOOP(avx2_f32, LOIPE_TARGET("avx2,fma"), __m256, _mm256_set1_ps, _mm256_fmadd_ps)
LOIPE_FMA_LOOP(avx2_f64, LOIPE_TARGET("avx2,fma"), __m256d, _mm256_set1_pd, _mm256_fmadd_pd)
#undef LOIPE_TARGET
#endif

// 16 bytes are what every 64-bit CPU has; without FMA instructions it is two operations.
using Floats = float __attribute__((vector_size(16)));
using Doubles = double __attribute__((vector_size(16)));

template <class Vector>
Vector multiply_add(Vector a, Vector b, Vector c) {
#if defined(__aarch64__)
  for (unsigned lane = 0; lane < sizeof(Vector) / sizeof(a[0]); ++lane)
    a[lane] = std::fma(a[lane], b[lane], c[lane]);
  return a;
#else
  return a * b + c;
#endif
}

Floats broadcast_f32(float x) { return Floats{} + x; }
Doubles broadcast_f64(double x) { return Doubles{} + x; }

LOIPE_FMA_LOOP(baseline_f32, , Floats, broadcast_f32, multiply_add)
LOIPE_FMA_LOOP(baseline_f64, , Doubles, broadcast_f64, multiply_add)
#undef LOIPE_FMA_LOOP

FmaLoop loop_of(DType dtype, std::string_view simd, int bits, void (*f32)(std::int64_t),
                void (*f64)(std::int64_t)) {
  const double lanes = bits / (8.0 * static_cast<double>(size_of(dtype)));
  return {simd, bits, dtype == DType::f32 ? f32 : f64, 2.0 * kSums * lanes};
}

}  // namespace

std::vector<FmaLoop> fma_loops(DType dtype) {
  std::vector<FmaLoop> loops;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f"))
    loops.push_back(loop_of(dtype, "avx512", 512, avx512_f32, avx512_f64));
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    loops.push_back(loop_of(dtype, "avx2", 256, avx2_f32, avx2_f64));
#endif
#if defined(__aarch64__)
  loops.push_back(loop_of(dtype, "neon", 128, baseline_f32, baseline_f64));
#else
  loops.push_back(loop_of(dtype, "baseline", 128, baseline_f32, baseline_f64));
#endif
  return loops;
}

FmaLoop widest_fma_loop(DType dtype) { return fma_loops(dtype).front(); }

}  // namespace loipe
