// SPDX-License-Identifier: Apache-2.0
#include "driver/machine_memory_loops.h"

namespace loipe {

namespace {

// The empty asm statements keep the compiler from calling memcpy, or from leaving out
// a repetition whose result is overwritten. Eight vectors at a time: as many sums as
// hide the time of an addition; they stay in registers, since only their total escapes.
#define LOIPE_MEMORY_LOOPS(simd, instructions, vector_bytes)                                            \
  using Vector_##simd = double __attribute__((vector_size(vector_bytes), may_alias));                   \
  instructions void simd##_read(const MemoryArrays& x) {                                                \
    const auto* a = reinterpret_cast<const Vector_##simd*>(x.a);                                        \
    const std::size_t count = x.bytes / sizeof(Vector_##simd);                                          \
    Vector_##simd sums[8] = {};                                                                         \
    for (std::size_t i = 0; i < count; i += 8) {                                                        \
      _Pragma("GCC unroll 8") for (std::size_t k = 0; k < 8; ++k) sums[k] += a[i + k];                  \
    }                                                                                                   \
    Vector_##simd total = {};                                                                           \
    for (std::size_t k = 0; k < 8; ++k) total += sums[k];                                               \
    asm volatile("" : : "r"(&total) : "memory");                                                        \
  }                                                                                                     \
  instructions void simd##_copy(const MemoryArrays& x) {                                                \
    auto* a = reinterpret_cast<Vector_##simd*>(x.a);                                                    \
    const auto* b = reinterpret_cast<const Vector_##simd*>(x.b);                                        \
    const std::size_t count = x.bytes / sizeof(Vector_##simd);                                          \
    for (std::size_t i = 0; i < count; i += 8) {                                                        \
      _Pragma("GCC unroll 8") for (std::size_t k = 0; k < 8; ++k) a[i + k] = b[i + k];                  \
      asm volatile("" : : : "memory");                                                                  \
    }                                                                                                   \
  }                                                                                                     \
  instructions void simd##_triad(const MemoryArrays& x) {                                               \
    auto* a = reinterpret_cast<Vector_##simd*>(x.a);                                                    \
    const auto* b = reinterpret_cast<const Vector_##simd*>(x.b);                                        \
    const auto* c = reinterpret_cast<const Vector_##simd*>(x.c);                                        \
    const std::size_t count = x.bytes / sizeof(Vector_##simd);                                          \
    for (std::size_t i = 0; i < count; i += 8) {                                                        \
      _Pragma("GCC unroll 8") for (std::size_t k = 0; k < 8; ++k) a[i + k] = b[i + k] + 0.5 * c[i + k]; \
      asm volatile("" : : : "memory");                                                                  \
    }                                                                                                   \
  }                                                                                                     \
  constexpr MemoryLoops k_##simd{simd##_read, simd##_copy, simd##_triad};

#if defined(__x86_64__)
LOIPE_MEMORY_LOOPS(avx512, __attribute__((target("avx512f"))), 64)
LOIPE_MEMORY_LOOPS(avx2, __attribute__((target("avx2"))), 32)
#endif
LOIPE_MEMORY_LOOPS(baseline, , 16)
#undef LOIPE_MEMORY_LOOPS

}  // namespace

MemoryLoops memory_loops() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return k_avx512;
  if (__builtin_cpu_supports("avx2")) return k_avx2;
#endif
  return k_baseline;
}

}  // namespace loipe
