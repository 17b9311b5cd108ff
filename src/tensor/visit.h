// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <cmath>
#include <limits>
#include <type_traits>

namespace loipe {

/// Calls f with a value of the C++ type of the dtype.
template <class F>
decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f(float{});
    case DType::f64: return f(double{});
    case DType::boolean: return f(bool{});
    case DType::i32: return f(std::int32_t{});
    case DType::i64: return f(std::int64_t{});
  }
  throw InternalError("unknown dtype");
}

/// Calls f with float{} or double{}; any other dtype is an internal error.
template <class F>
decltype(auto) visit_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f(float{});
    case DType::f64: return f(double{});
    default: throw InternalError("a floating dtype was expected");
  }
}

/// Conversion between element types without undefined behaviour: floating to
/// integer truncates and saturates, NaN becomes 0; anything to bool is "non-zero".
template <class To, class From>
To element_cast(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(value)) return 0;
    if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace loipe
