// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>

#include "attention/element.h"
#include "attention/exact/arena.h"
#include "attention/exact/kernels/attention_kernels.h"

// From the caller's strided rows to what the kernels read.

namespace loipe::attention {

inline constexpr double kLog2E = 1.4426950408889634074, kLn2 = 0.69314718055994530942;

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return divide_up(a, b) * b; }

/// The kernels for the running CPU (base/simd_level.h).
const AttentionKernels& kernels_of_this_cpu();

template <class Body>
void for_each(const Parallel& parallel, std::int64_t tasks, Body&& body) {
  const auto call = [](void* closure, std::int64_t task, int thread) {
    (*static_cast<std::remove_reference_t<Body>*>(closure))(task, thread);
  };
  if (parallel.run != nullptr && parallel.threads > 1 && tasks > 1) {
    parallel.run(parallel.self, tasks, call, &body);
    return;
  }
  for (std::int64_t task = 0; task < tasks; ++task) body(task, 0);
}

/// Which rows of a head to load, and what becomes of them: (element - shift[column]) * factor.
template <class T>
struct RowRange {
  std::int64_t head, first, count;
  T factor = 1;
  const T* shift = nullptr;                  ///< null: 0
  const std::uint8_t* is_allowed = nullptr;  ///< [count]; rows that are not become 0 without being read
};

/// out[row][column], `width` columns and `rows` rows of which those outside are 0.
template <class E>
void load_rows(const Rows<const E>& from, const RowRange<Accumulator<E>>& range, std::int64_t columns,
               Accumulator<E>* out, std::int64_t width, std::int64_t rows) {
  using T = Accumulator<E>;
  std::fill(out, out + width * rows, T{0});
  if (!from) return;
  for (std::int64_t row = 0; row < range.count; ++row, out += width) {
    if (range.is_allowed != nullptr && range.is_allowed[row] == 0) continue;
    const E* const at = from.at(range.head, range.first + row);
    const auto copy = [&](auto stride) {
      if (range.shift == nullptr)
        for (std::int64_t c = 0; c < columns; ++c) out[c] = to_accumulator(at[c * stride]) * range.factor;
      else
        for (std::int64_t c = 0; c < columns; ++c)
          out[c] = (to_accumulator(at[c * stride]) - range.shift[c]) * range.factor;
    };
    if (from.column_stride == 1) copy(std::integral_constant<std::int64_t, 1>{});
    else copy(from.column_stride);
  }
}

/// Row groups of rows[rows][columns] (attention_kernels.h); both are multiples of kGroup.
template <class T>
void to_row_groups(const TileKernels<T>& kernels, const T* rows, std::int64_t count, std::int64_t columns,
                   T* out) {
  for (std::int64_t row = 0; row < count; row += kGroup)
    kernels.transpose(rows + row * columns, columns, out + row * columns, kGroup, kGroup, columns);
}

/// Column groups.
template <class T>
void to_column_groups(const T* rows, std::int64_t count, std::int64_t columns, T* out) {
  for (std::int64_t column = 0; column < columns; column += kGroup)
    for (std::int64_t row = 0; row < count; ++row, out += kGroup)
      std::copy_n(rows + row * columns + column, kGroup, out);
}

/// The key mask of the keys from `first` on; null: all are allowed.
template <class T>
const std::uint8_t* key_mask_at(const Mask<T>& mask, std::int64_t key_head, std::int64_t first) {
  return mask.key_mask == nullptr ? nullptr : mask.key_mask + key_head * mask.key_mask_head_stride + first;
}

/// A tile of `queries` queries from `query` on and `keys` keys from `key` on.
struct TileRange {
  std::int64_t head, key_head;
  std::int64_t query, queries, key, keys;
};

/// The band of causal mask and window; `keys_of_tile` is how many the kernel computes. False: nothing
/// of the tile counts.
template <class T>
bool set_band(const Mask<T>& mask, const TileRange& tile, std::int64_t keys_of_tile, Band& band) {
  constexpr std::int64_t kFar = 1 << 28;
  const std::int64_t distance = tile.query - tile.key;
  const std::int64_t window = mask.window > 0 ? mask.window : kFar + std::max(tile.query, tile.key);
  const std::int64_t low = distance - window + 1, high = mask.is_causal ? distance : distance + window - 1;
  if (high <= -tile.queries || low >= tile.keys) return false;
  band.low = static_cast<std::int32_t>(std::clamp(low, -kFar, kFar));
  band.high = static_cast<std::int32_t>(std::clamp(high, -kFar, kFar));
  band.is_whole = low <= 1 - tile.queries && high >= tile.keys - 1 && tile.keys == keys_of_tile;
  return true;
}

enum class KeyBlock { all_allowed, some_allowed, none_allowed };
inline KeyBlock key_block(const std::uint8_t* is_allowed, std::int64_t count) {
  if (is_allowed == nullptr) return KeyBlock::all_allowed;
  const auto allowed = count - std::count(is_allowed, is_allowed + count, 0);
  return allowed == count ? KeyBlock::all_allowed
         : allowed > 0    ? KeyBlock::some_allowed
                          : KeyBlock::none_allowed;
}

/// What is added to the scores of a tile: out[query*query_stride + key*key_stride] = log2(e) bias, -inf for
/// keys that the key mask excludes. What lies outside of the tile is not written.
template <class T>
void load_additive(const Rows<const T>& bias, const std::uint8_t* is_allowed, const TileRange& tile, T* out,
                   std::int64_t query_stride, std::int64_t key_stride) {
  for (std::int64_t i = 0; i < tile.queries; ++i)
    for (std::int64_t j = 0; j < tile.keys; ++j) {
      T& to = out[i * query_stride + j * key_stride];
      if (is_allowed != nullptr && is_allowed[j] == 0) to = -std::numeric_limits<T>::infinity();
      else to = bias ? get(bias, tile.head, tile.query + i, tile.key + j) * static_cast<T>(kLog2E) : T{0};
    }
}

/// mean[key_head][column] over the allowed keys, for columns below `columns`, else 0.
template <class E>
void mean_of_keys(const Problem<E>& problem, const Rows<const E>& rows, std::int64_t key_head,
                  std::int64_t columns, std::int64_t width, Accumulator<E>* mean) {
  using T = Accumulator<E>;
  const std::uint8_t* const is_allowed = key_mask_at(problem.mask, key_head, 0);
  constexpr std::int64_t kAtOnce = 64;
  std::fill(mean, mean + width, T{0});
  for (std::int64_t begin = 0; begin < columns; begin += kAtOnce) {
    const std::int64_t count = std::min(kAtOnce, columns - begin);
    double sum[kAtOnce] = {};
    std::int64_t keys = 0;
    for (std::int64_t j = 0; j < problem.shape.keys; ++j) {
      if (is_allowed != nullptr && is_allowed[j] == 0) continue;
      ++keys;
      for (std::int64_t c = 0; c < count; ++c)
        sum[c] += static_cast<double>(get(rows, key_head, j, begin + c));
    }
    for (std::int64_t c = 0; keys > 0 && c < count; ++c)
      mean[begin + c] = static_cast<T>(sum[c] / static_cast<double>(keys));
  }
}

/// Largest mean of a column over the root mean square of what centring leaves: how many times larger the
/// rounding error of a row is than that of a centred one.
template <class E>
double offset_of_keys(const Problem<E>& problem, const Rows<const E>& rows, std::int64_t key_head,
                      std::int64_t columns, const Accumulator<E>* mean) {
  const std::uint8_t* const is_allowed = key_mask_at(problem.mask, key_head, 0);
  double largest = 0, squares = 0;
  std::int64_t elements = 0;
  for (std::int64_t c = 0; c < columns; ++c)
    largest = std::max(largest, std::abs(static_cast<double>(mean[c])));
  for (std::int64_t j = 0; j < problem.shape.keys; ++j) {
    if (is_allowed != nullptr && is_allowed[j] == 0) continue;
    elements += columns;
    for (std::int64_t c = 0; c < columns; ++c) {
      const double rest = static_cast<double>(get(rows, key_head, j, c)) - static_cast<double>(mean[c]);
      squares += rest * rest;
    }
  }
  return largest == 0 ? 0 : largest / std::sqrt(squares / static_cast<double>(elements));
}

/// Extents as the kernels have them, and the means that keys and values are centred by.
template <class E>
struct Centred {
  using T = Accumulator<E>;
  const Problem<E>& problem;
  const TileKernels<T>& kernels;
  std::int64_t head_size, value_size;  ///< padded
  T *k_mean, *v_mean;                  ///< [kv_heads][head_size], [kv_heads][value_size]
  double* v_offset;                    ///< [kv_heads], see offset_of_keys

  Centred(const Problem<E>& p, Arena& arena)
      : problem(p),
        kernels(kernels_of_this_cpu().of<T>()),
        head_size(round_up(p.shape.head_size, kGroup)),
        value_size(round_up(p.shape.value_size, kGroup)),
        k_mean(arena.take<T>(p.shape.kv_heads * head_size)),
        v_mean(arena.take<T>(p.shape.kv_heads * value_size)),
        v_offset(arena.take<double>(p.shape.kv_heads)) {}

  void compute_means(const Parallel& parallel) {
    for_each(parallel, 2 * problem.shape.kv_heads, [&](std::int64_t task, int) {
      const std::int64_t head = task / 2, d = problem.shape.head_size, dv = problem.shape.value_size;
      if (task % 2 == 0)
        return mean_of_keys(problem, problem.k, head, d, head_size, k_mean + head * head_size);
      mean_of_keys(problem, problem.v, head, dv, value_size, v_mean + head * value_size);
      v_offset[head] = offset_of_keys(problem, problem.v, head, dv, v_mean + head * value_size);
    });
  }
  const T* k_mean_of(std::int64_t key_head) const { return k_mean + key_head * head_size; }
  const T* v_mean_of(std::int64_t key_head) const { return v_mean + key_head * value_size; }

  /// scale log2(e): the factor of the packed queries.
  T query_factor() const { return static_cast<T>(problem.scale * kLog2E); }
  /// scale <row, mean key>: what centring takes from the logits of a query.
  double centred_logit(const Rows<const E>& rows, std::int64_t head, std::int64_t i) const {
    double sum = 0;
    const T* const mean = k_mean_of(problem.shape.key_head(head));
    for (std::int64_t c = 0; rows && c < problem.shape.head_size; ++c)
      sum += static_cast<double>(get(rows, head, i, c)) * static_cast<double>(mean[c]);
    return problem.scale * sum;
  }
};

}  // namespace loipe::attention
