// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/plan.h"

namespace loipe::cpu {

/// A loop over the results of a product that runs inside it: a task of the product computes one block of
/// rows x columns, the epilogue reads that while it is in the first caches and writes what it makes of it,
/// and the results themselves never exist as a whole. All blocks have the same extents.
struct ProductEpilogue {
  struct View {
    BufferId buffer;
    std::int64_t offset;     ///< bytes from the start of the buffer to that of the first block
    Integers block_strides;  ///< bytes from one block to the next along each of `blocks`
  };

  std::unique_ptr<const Step> step;  ///< over one block, on one thread; its buffer k is views[k]
  std::vector<View> views;
  std::size_t results = 0;             ///< the view that is the block of results, row-major
  std::int64_t rows = 1, columns = 1;  ///< of a block
  Shape blocks;                        ///< how many there are along axes of the batch, of rows, of columns

  std::size_t scratch_bytes() const { return bases_bytes() + step->scratch_bytes(); }
  /// Block number `block`, counted in row-major order of `blocks`, whose results lie at `block_results`.
  void run(const RunContext& around, std::int64_t block, std::byte* block_results, std::byte* scratch) const;

 private:
  std::size_t bases_bytes() const { return whole_lines(views.size() * sizeof(std::byte*)); }
};

}  // namespace loipe::cpu
