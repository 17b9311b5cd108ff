// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace loipe {

/// How a thread's floating-point unit rounds and treats subnormal numbers (x86: MXCSR; elsewhere
/// nothing can be set). Results are bitwise the same on every thread only if all have
/// the mode of the one that called.
class FloatingMode {
 public:
  static FloatingMode of_this_thread() {
#if defined(__SSE2__)
    return FloatingMode(_mm_getcsr());
#else
    return FloatingMode(0);
#endif
  }
  static FloatingMode from_bits(std::uint32_t bits) { return FloatingMode(bits); }

  /// The same, but subnormal operands and results count as 0.
  FloatingMode flushing_subnormals() const {
    constexpr std::uint32_t kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
    return FloatingMode(bits_ | kFlushToZero | kDenormalsAreZero);
  }
  void set() const {
#if defined(__SSE2__)
    _mm_setcsr(bits_);
#endif
  }
  std::uint32_t bits() const { return bits_; }
  bool operator==(const FloatingMode&) const = default;

 private:
  explicit FloatingMode(std::uint32_t bits) : bits_(bits) {}
  std::uint32_t bits_;
};

/// Sets a mode while it lives.
class ScopedFloatingMode {
 public:
  explicit ScopedFloatingMode(FloatingMode mode) : before_(FloatingMode::of_this_thread()) { mode.set(); }
  ~ScopedFloatingMode() { before_.set(); }
  ScopedFloatingMode(const ScopedFloatingMode&) = delete;
  ScopedFloatingMode& operator=(const ScopedFloatingMode&) = delete;

 private:
  FloatingMode before_;
};

}  // namespace loipe
