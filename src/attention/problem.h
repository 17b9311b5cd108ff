// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

namespace loipe::attention {

/// Extents of one attention. Query head h reads key head h * kv_heads / heads, so `kv_heads` must
/// divide `heads`. All may be 0.
struct Shape {
  std::int64_t heads, kv_heads, queries, keys, head_size, value_size;

  std::int64_t readers() const { return kv_heads == 0 ? 0 : heads / kv_heads; }
  std::int64_t key_head(std::int64_t head) const { return head / readers(); }
};

/// A number with the upper 16 bits of an f32: storage only, arithmetic is in f32.
struct Bf16 {
  std::uint16_t bits;
};

/// The type in which elements E are multiplied and added.
template <class E>
using Accumulator = std::conditional_t<std::is_same_v<std::remove_const_t<E>, double>, double, float>;

/// Element (head, row, column) lies at data[head*head_stride + row*row_stride + column*column_stride].
/// Strides may be anything, 0 and negative too (0 not for results). data == null: absent.
template <class E>
struct Rows {
  E* data = nullptr;
  std::int64_t head_stride = 0, row_stride = 0, column_stride = 1;

  explicit operator bool() const { return data != nullptr; }
  E* at(std::int64_t head, std::int64_t row) const { return data + head * head_stride + row * row_stride; }
  operator Rows<const E>() const { return {data, head_stride, row_stride, column_stride}; }
};

/// Rows that lie side by side, heads one after another.
template <class E>
Rows<E> contiguous(E* data, std::int64_t rows, std::int64_t columns) {
  return {data, rows * columns, columns, 1};
}

/// Which keys a query may look at. Query i may look at key j iff all of these hold:
///   causal: j <= i (also when there are more keys than queries, or fewer);
///   window w > 0: i - j < w, and, unless causal, j - i < w;
///   key_mask given: key_mask[kv_head * key_mask_head_stride + j] != 0;
///   bias given: it is not -inf.
/// A key that key_mask excludes is never read. All other keys must be finite, even if
/// no query may look at them.
template <class T>
struct Mask {
  bool is_causal = false;
  std::int64_t window = 0;
  const std::uint8_t* key_mask = nullptr;
  std::int64_t key_mask_head_stride = 0;  ///< 0: one mask for all heads
  /// Added to the logits: bias[head*head_stride + query*row_stride + key*column_stride].
  Rows<const T> bias = {};
};

/// Runs body(closure, task, thread) once for every task in 0..tasks-1, with thread in
/// 0..threads-1; returns when all are done. Tasks may begin in any order, on any thread.
/// `run` null: the caller's thread does everything.
struct Parallel {
  int threads = 1;
  void (*run)(void* self, std::int64_t tasks, void (*body)(void*, std::int64_t task, int thread),
              void* closure) = nullptr;
  void* self = nullptr;
};

/// What attention is computed from: logits x = scale <q, k> + bias.
/// Shapes: q [heads, queries, head_size], k [kv_heads, keys, head_size], v [kv_heads, keys, value_size].
template <class E>
struct Problem {
  Shape shape;
  double scale;
  Mask<Accumulator<E>> mask;
  Rows<const E> q, k, v;
};

}  // namespace loipe::attention
