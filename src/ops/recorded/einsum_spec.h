// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "ir/op_def.h"
#include "jacobian/coordinate.h"

namespace loipe {

/// "ab,bc->ac": the labels of every operand and of the result, numbered by
/// letters (a..z are 0..25, A..Z are 26..51).
struct EinsumSpec {
  std::vector<std::vector<Label>> operands;
  std::vector<Label> result;

  /// UserError that quotes the text and says what was expected.
  static EinsumSpec parse(std::string_view text);
  std::string print() const;
};

/// The spec of an einsum node checked against its operand types.
struct EinsumPlan {
  EinsumSpec spec;
  std::vector<std::int64_t> extents;  ///< per label; -1 for letters that do not occur
  std::vector<Label> labels;          ///< result labels, then the summed ones
  std::vector<std::size_t> factors;   ///< positions of the floating operands
  std::vector<std::size_t> masks;     ///< positions of the bool operands

  EinsumPlan(std::string_view text, std::span<const TensorType* const> operands);
  /// Index combinations: the product of the extents of all labels.
  std::int64_t combinations() const { return count_assignments(labels, extents); }
};

}  // namespace loipe
