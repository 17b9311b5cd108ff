// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

// Arithmetic of one element. Integers wrap around on overflow, as in JAX, and no
// operand leads to undefined behaviour: x/0 = 0 and x rem 0 = x, so that
// x = (x/y)*y + x rem y always holds.

namespace loipe::ops::scalar {

/// Computes in the unsigned type of the same width, where overflow is defined.
template <class T, class F>
T wrapping(T x, T y, F f) {
  using Unsigned = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<Unsigned>(f(static_cast<Unsigned>(x), static_cast<Unsigned>(y))));
}

inline constexpr auto add = []<class T>(T x, T y) {
  if constexpr (std::is_integral_v<T>) return wrapping(x, y, [](auto a, auto b) { return a + b; });
  else return x + y;
};

inline constexpr auto subtract = []<class T>(T x, T y) {
  if constexpr (std::is_integral_v<T>) return wrapping(x, y, [](auto a, auto b) { return a - b; });
  else return x - y;
};

inline constexpr auto multiply = []<class T>(T x, T y) {
  if constexpr (std::is_integral_v<T>) return wrapping(x, y, [](auto a, auto b) { return a * b; });
  else return x * y;
};

inline constexpr auto negate = []<class T>(T x) {
  if constexpr (std::is_integral_v<T>) return subtract(T{0}, x);
  else return -x;
};

inline constexpr auto divide = []<class T>(T x, T y) {
  if constexpr (std::is_integral_v<T>) return y == 0 ? T{0} : y == -1 ? negate(x) : static_cast<T>(x / y);
  else return x / y;
};

/// What truncating division leaves; it has the sign of x.
inline constexpr auto remainder = []<class T>(T x, T y) {
  if constexpr (std::is_integral_v<T>) return y == 0 ? x : y == -1 ? T{0} : static_cast<T>(x % y);
  else return std::fmod(x, y);
};

/// x^y by repeated squaring; for y < 0 the reciprocal of x^-y.
template <class T>
T integer_power(T x, std::int64_t y) {
  T power{1};
  T square = x;
  // The magnitude of the most negative y does not fit the signed type.
  for (std::uint64_t n = y < 0 ? 0 - static_cast<std::uint64_t>(y) : static_cast<std::uint64_t>(y); n > 0;
       n >>= 1) {
    if (n & 1) power = multiply(power, square);
    square = multiply(square, square);
  }
  return y < 0 ? divide(T{1}, power) : power;
}

}  // namespace loipe::ops::scalar
