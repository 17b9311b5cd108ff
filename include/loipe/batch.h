// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace loipe {

/// How the B examples of a batch lie in memory, for tensors of n elements per example.
enum class BatchLayout : std::uint8_t {
  /// Row-major [B, shape]: all elements of one example, then those of the next.
  array_of_structures,
  /// [n, B]: all examples of element 0, then all examples of element 1, and so on;
  /// elements are numbered row-major.
  structure_of_arrays,
};

/// The layout of all arguments that are not shared, and of all outputs and blocks.
///
/// A stride is for structure_of_arrays alone: the distance, in elements of the dtype,
/// from [e, 0] to [e+1, 0]; at least B, 0 stands for B. A span then has
/// (n-1)*stride + B elements. Strides of multiples of 1 KiB are slow, because the rows
/// then compete for the same lines of the cache: B rounded up to a multiple of 64 bytes
/// plus 64 bytes is a good one.
struct BatchLayouts {
  BatchLayout arguments = BatchLayout::array_of_structures;
  BatchLayout results = BatchLayout::array_of_structures;
  std::int64_t argument_stride = 0;
  std::int64_t result_stride = 0;
};

}  // namespace loipe
