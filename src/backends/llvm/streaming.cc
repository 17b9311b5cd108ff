// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/streaming.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace loipe::jit {

std::size_t streaming_threshold() {
  static const std::size_t threshold = [] {
    constexpr std::size_t kUsual = std::size_t{1} << 20;
#ifdef _SC_LEVEL2_CACHE_SIZE
    if (const long bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0)
      return static_cast<std::size_t>(bytes);
#endif
    return kUsual;
  }();
  return threshold;
}

#if defined(__SSE2__)

namespace {

constexpr std::size_t kLine = 64;

/// Bytes before the next line.
std::size_t head_bytes(const std::byte* address, std::size_t bytes) {
  return std::min(bytes, (kLine - reinterpret_cast<std::uintptr_t>(address) % kLine) % kLine);
}

}  // namespace

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t head = head_bytes(to, bytes);
  std::memcpy(to, from, head);
  to += head, from += head, bytes -= head;
  for (; bytes >= kLine; to += kLine, from += kLine, bytes -= kLine)
    for (std::size_t part = 0; part < kLine; part += sizeof(__m128i))
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + part),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + part)));
  std::memcpy(to, from, bytes);
}

void stream_fill(std::byte* to, std::size_t bytes, const std::byte* element, std::size_t element_bytes) {
  alignas(kLine) std::byte line[kLine];
  for (std::size_t at = 0; at < kLine; at += element_bytes) std::memcpy(line + at, element, element_bytes);
  const std::size_t head = head_bytes(to, bytes);
  std::memcpy(to, line, head);
  to += head, bytes -= head;
  const __m128i part = _mm_load_si128(reinterpret_cast<const __m128i*>(line));
  for (; bytes >= kLine; to += kLine, bytes -= kLine)
    for (std::size_t at = 0; at < kLine; at += sizeof(__m128i))
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), part);
  std::memcpy(to, line, bytes);
}

void stream_fence() { _mm_sfence(); }

#else

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

void stream_fill(std::byte* to, std::size_t bytes, const std::byte* element, std::size_t element_bytes) {
  for (std::size_t at = 0; at < bytes; at += element_bytes) std::memcpy(to + at, element, element_bytes);
}

void stream_fence() {}

#endif

}  // namespace loipe::jit
