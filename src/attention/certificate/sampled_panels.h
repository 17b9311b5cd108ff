// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "attention/certificate/kernels/sample_kernels.h"
#include "attention/certificate/sampling.h"
#include "attention/statistics/block_reader.h"

namespace loipe::attention::certificate {

/// The kernels for the running CPU.
template <class E>
const SampleKernels<E>& sample_kernels_of_this_cpu();

/// Extents that all passes of an audit share, and means that keys and values are centred by.
template <class E>
struct Extents {
  const Problem<E>& problem;
  const SampleKernels<E>& kernels;
  std::int64_t lanes, a_width, b_width;
  std::int64_t rows, columns;              ///< draws of each head, of each head of keys
  std::int64_t row_panels, column_panels;  ///< of `lanes` draws
  statistics::Chunks keys, queries;
  E *key_mean, *value_mean;  ///< [kv_heads][a_width], [kv_heads][b_width]

  E* block;      ///< [kBlockRows][larger of widths]
  double* sums;  ///< [larger of widths]

  Extents(const Problem<E>& problem, const Sampling& sampling, Arena& arena);
  void compute_means(const almost_linear::Approximation* approximation) const;

  const E* key_mean_of(std::int64_t kh) const { return key_mean + kh * a_width; }
  const E* value_mean_of(std::int64_t kh) const { return value_mean + kh * b_width; }
  E score_factor() const { return static_cast<E>(problem.scale * kLog2E); }
  /// scale <q_i, mean key>.
  double centred_logit(std::int64_t head, std::int64_t i) const;
  std::int64_t head_size() const { return problem.shape.head_size; }
  std::int64_t value_size() const { return problem.shape.value_size; }
};

/// Positions in the other sequence that count for a row: first <= position <= last.
struct Range {
  std::int64_t first, last;
};
template <class T>
Range keys_of(const Mask<T>& mask, std::int64_t query) {
  constexpr std::int64_t kFar = std::int64_t{1} << 50;
  return {mask.window > 0 ? query - mask.window + 1 : -kFar, mask.is_causal    ? query
                                                             : mask.window > 0 ? query + mask.window - 1
                                                                               : kFar};
}
template <class T>
Range queries_of(const Mask<T>& mask, std::int64_t key) {
  constexpr std::int64_t kFar = std::int64_t{1} << 50;
  return {mask.is_causal    ? key
          : mask.window > 0 ? key - mask.window + 1
                            : -kFar,
          mask.window > 0 ? key + mask.window - 1 : kFar};
}

/// The samples of a panel, as kernels read them; lanes without a sample are 0.
template <class E>
struct Panel {
  E *a, *b;                  ///< [a_width][lanes], [b_width][lanes]
  Range* ranges;             ///< [lanes]
  std::int64_t first, last;  ///< of all lanes together

  static Panel take(const Extents<E>& e, Arena& arena) {
    return {arena.take<E>(e.a_width * e.lanes), arena.take<E>(e.b_width * e.lanes),
            arena.take<Range>(e.lanes), 0, -1};
  }
  void clear(const Extents<E>& e) {
    std::fill_n(a, e.a_width * e.lanes, E{0});
    std::fill_n(b, e.b_width * e.lanes, E{0});
    first = std::numeric_limits<std::int64_t>::max(), last = -1;
  }
  void set_range(std::int64_t lane, const Range& range) {
    ranges[lane] = range;
    first = std::min(first, range.first), last = std::max(last, range.last);
  }
  /// Lanes from `used` on, whose sums nobody reads, shall not be a reason to mask.
  void finish(const Extents<E>& e, std::int64_t used) {
    for (std::int64_t l = used; l < e.lanes; ++l) ranges[l] = ranges[0];
  }
};

/// What a thread needs to take a block through panels.
template <class E>
struct BlockMemory {
  E *a, *b;                              ///< [kBlockRows][a_width], [kBlockRows][b_width]
  E *weights, *dx;                       ///< [kBlockRows][lanes]
  E *first, *last;                       ///< [lanes]
  E *shift, *mean;                       ///< [kBlockRows]
  E *near_first, *near_last;             ///< [lanes]
  E *slopes, *exponentials, *projected;  ///< [kBlockRows][lanes]
  E *difference_a, *difference_b;        ///< as a, b

  static BlockMemory take(const Extents<E>& e, Arena& arena) {
    BlockMemory m;
    for (E** at : {&m.a, &m.difference_a}) *at = arena.take<E>(kBlockRows * e.a_width);
    for (E** at : {&m.b, &m.difference_b}) *at = arena.take<E>(kBlockRows * e.b_width);
    for (E** at : {&m.weights, &m.dx, &m.slopes, &m.exponentials, &m.projected})
      *at = arena.take<E>(kBlockRows * e.lanes + 1);
    for (E** at : {&m.first, &m.last, &m.near_first, &m.near_last}) *at = arena.take<E>(e.lanes);
    for (E** at : {&m.shift, &m.mean}) *at = arena.take<E>(kBlockRows);
    return m;
  }
};

/// Positions of a range within a block, as numbers of type E.
template <class E>
void write_range(const Range& range, std::int64_t block, E& first, E& last) {
  const std::int64_t low = std::clamp<std::int64_t>(range.first - block, -1, kBlockRows);
  const std::int64_t high = std::clamp<std::int64_t>(range.last - block, -1, kBlockRows);
  first = static_cast<E>(low), last = static_cast<E>(high);
}

/// Fills in what all kernels need. False: no row of the block counts for the panel.
template <class E>
bool set_tile(const Extents<E>& e, const Panel<E>& panel, std::int64_t block, std::int64_t rows, const E* a,
              const E* b, const std::uint8_t* row_is_allowed, const BlockMemory<E>& m, SampleTile<E>& tile) {
  if (panel.last < block || panel.first > block + rows - 1) return false;
  tile.a = a, tile.b = b, tile.sample_a = panel.a, tile.sample_b = panel.b;
  tile.a_width = e.a_width, tile.b_width = e.b_width, tile.rows = rows;
  tile.row_is_allowed = row_is_allowed;
  bool is_whole = true;
  for (std::int64_t l = 0; l < e.lanes; ++l)
    is_whole = is_whole && panel.ranges[l].first <= block && panel.ranges[l].last >= block + rows - 1;
  if (!is_whole)
    for (std::int64_t l = 0; l < e.lanes; ++l) write_range(panel.ranges[l], block, m.first[l], m.last[l]);
  tile.first = is_whole ? nullptr : m.first, tile.last = is_whole ? nullptr : m.last;
  tile.weights = m.weights, tile.dx = m.dx;
  return true;
}

}  // namespace loipe::attention::certificate
