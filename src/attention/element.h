// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>

#include "attention/problem.h"

namespace loipe::attention {

inline float to_accumulator(float value) { return value; }
inline double to_accumulator(double value) { return value; }
inline float to_accumulator(Bf16 value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }

/// Rounds to the nearest, ties to even; NaN stays NaN.
inline Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return {static_cast<std::uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

template <class E>
E to_element(Accumulator<E> value) {
  if constexpr (std::is_same_v<E, Bf16>) return to_bf16(value);
  else return value;
}

/// Element (head, row, column) as a number.
template <class E>
Accumulator<E> get(const Rows<E>& rows, std::int64_t head, std::int64_t row, std::int64_t column) {
  return to_accumulator(rows.at(head, row)[column * rows.column_stride]);
}

template <class E>
void set(const Rows<E>& rows, std::int64_t head, std::int64_t row, std::int64_t column,
         Accumulator<E> value) {
  rows.at(head, row)[column * rows.column_stride] = to_element<E>(value);
}

/// The mask without its bias.
template <class T>
bool is_allowed(const Mask<T>& mask, std::int64_t key_head, std::int64_t query, std::int64_t key) {
  if (mask.is_causal && key > query) return false;
  if (mask.window > 0 && query - key >= mask.window) return false;
  if (mask.window > 0 && !mask.is_causal && key - query >= mask.window) return false;
  return mask.key_mask == nullptr || mask.key_mask[key_head * mask.key_mask_head_stride + key] != 0;
}

}  // namespace loipe::attention
