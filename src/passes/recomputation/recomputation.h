// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"

namespace loipe {

/// Programs that first compute values and then derivatives from them, as gradients do, keep
/// everything in between. Here some of it is computed a second time instead, when the
/// derivative has come that far: T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training Deep Nets
/// with Sublinear Memory Cost" (2016).
///
/// The forward part is what the first outputs are computed from. A *cut* is a place in it
/// where all that comes later depends on one value (and on arguments): the residual stream
/// between two layers. Between two cuts lies a segment, of which only the value at its
/// beginning has to be kept.
struct RecomputationOptions {
  std::size_t forward_outputs = 1;  ///< how many of the outputs are values
  std::size_t stride = 1;           ///< every so manieth cut is used
  /// How many segments, from the first on, are computed again; the last one never is.
  std::size_t segments = 0;
  /// Values that take more than 1000 multiplications per element are kept all the same.
  bool keeps_expensive = true;
};

/// Segments that could be computed again, 0 where the program has no cut.
std::size_t count_segments(const Program& program, std::size_t forward_outputs, std::size_t stride);

/// The same outputs from a program that holds fewer values at once: the same operations on the same operands.
/// It is in an order that must be kept: no other pass comes after this one.
Program with_recomputation(const Program& program, const RecomputationOptions& options);

}  // namespace loipe
