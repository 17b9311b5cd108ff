// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/exact/packing.h"
#include "attention/statistics/kernels/moment_kernels.h"

namespace loipe::attention::statistics {

/// A range of rows of one head.
struct Chunk {
  std::int64_t head, first, count;
};

/// Rows cut into at most 16 pieces, by their number alone; each has sums of its own, which are added in
/// order.
struct Chunks {
  std::int64_t rows, size, count;
  explicit Chunks(std::int64_t r)
      : rows(r),
        size(round_up(std::max<std::int64_t>(divide_up(r, 16), 1024), kBlockRows)),
        count(divide_up(r, size)) {}
  Chunk of(std::int64_t head, std::int64_t chunk) const {
    return {head, chunk * size, std::min(size, rows - chunk * size)};
  }
};

/// Rows in blocks [kBlockRows][width], less a mean; rows that are not there or not allowed, and columns
/// beyond `columns`, are 0.
template <class E>
struct BlockReader {
  Rows<const E> from;
  std::int64_t columns, width;
  const E* mean;                   ///< [columns]; null: 0
  const std::uint8_t* is_allowed;  ///< of all rows; null: all are
  E* block;                        ///< memory

  template <class Body>
  void for_each(const Chunk& chunk, Body&& body) const {
    for (std::int64_t at = 0; at < chunk.count; at += kBlockRows)
      body(read({chunk.head, chunk.first + at, std::min<std::int64_t>(kBlockRows, chunk.count - at)}));
  }
  /// At most kBlockRows rows; where the caller's memory is as a block is, that.
  const E* read(const Chunk& rows) const {
    const bool is_plain = is_allowed == nullptr && columns == width && from.column_stride == 1;
    if (is_plain && rows.count == kBlockRows) return plain_block(from.at(rows.head, rows.first));
    const std::uint8_t* const allowed = is_allowed == nullptr ? nullptr : is_allowed + rows.first;
    load_rows(from, RowRange<E>{rows.head, rows.first, rows.count, E{1}, mean, allowed}, columns, block,
              width, kBlockRows);
    return block;
  }

 private:
  const E* plain_block(const E* rows) const {
    if (mean == nullptr && from.row_stride == width) return rows;
    if (mean == nullptr) {
      for (int row = 0; row < kBlockRows; ++row)
        std::copy_n(rows + row * from.row_stride, width, block + row * width);
      return block;
    }
    for (int row = 0; row < kBlockRows; ++row) {
      const E* __restrict const in = rows + row * from.row_stride;
      const E* __restrict const centre = mean;
      E* __restrict const out = block + row * width;
      for (std::int64_t c = 0; c < width; c += kPad)
        for (std::int64_t l = 0; l < kPad; ++l) out[c + l] = in[c + l] - centre[c + l];
    }
    return block;
  }
};

/// The kernels for the running CPU.
template <class E>
const MomentKernels<E>& moment_kernels_of_this_cpu();

}  // namespace loipe::attention::statistics
