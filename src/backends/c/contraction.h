// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/program.h"
#include "jacobian/coordinate.h"

namespace loipe::c {

/// einsum and dot_general as one: the sum over `summed` of the product of the factors where all
/// masks hold, in the order of the labels.
struct Contraction {
  std::vector<std::int64_t> extents;         ///< per label
  std::vector<std::vector<Label>> operands;  ///< labels of each operand's axes
  std::vector<Label> result, summed;
  std::vector<std::size_t> factors, masks;  ///< operand positions

  static Contraction of(const Program& program, Value v);
};

}  // namespace loipe::c
