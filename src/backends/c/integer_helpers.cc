// SPDX-License-Identifier: Apache-2.0
// Arithmetic of integers wraps around and divides by zero as in ops/elementwise/scalar.h, and
// numbers become integers as in tensor/visit.h: nothing is undefined.
#include "backends/c/helpers.h"

namespace loipe::c {

std::span<const Helper> integer_helpers() {
  static const std::vector<Helper> helpers{
      {"add", "static inline $T $P_add_$S($T x, $T y) { return ($T)(($U)x + ($U)y); }\n"},
      {"sub", "static inline $T $P_sub_$S($T x, $T y) { return ($T)(($U)x - ($U)y); }\n"},
      {"mul", "static inline $T $P_mul_$S($T x, $T y) { return ($T)(($U)x * ($U)y); }\n"},
      {"neg", "static inline $T $P_neg_$S($T x) { return ($T)(0 - ($U)x); }\n"},
      {"abs", "static inline $T $P_abs_$S($T x) { return x < 0 ? $P_neg_$S(x) : x; }\n", {"neg"}},
      {"div",
       "static inline $T $P_div_$S($T x, $T y) { return y == 0 ? 0 : y == -1 ? $P_neg_$S(x) : x / y; }\n",
       {"neg"}},
      {"rem", "static inline $T $P_rem_$S($T x, $T y) { return y == 0 ? x : y == -1 ? 0 : x % y; }\n"},
      {"to_i32",
       R"(static inline int32_t $P_to_i32_$S($T x) {
  if (isnan(x)) return 0;
  if (x <= ($T)INT32_MIN) return INT32_MIN;
  return x >= ($T)INT32_MAX ? INT32_MAX : (int32_t)x;
}
)"},
      {"to_i64",
       R"(static inline int64_t $P_to_i64_$S($T x) {
  if (isnan(x)) return 0;
  if (x <= ($T)INT64_MIN) return INT64_MIN;
  return x >= ($T)INT64_MAX ? INT64_MAX : (int64_t)x;
}
)"},
  };
  return helpers;
}

}  // namespace loipe::c
