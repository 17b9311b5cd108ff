// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/program.h"

namespace loipe::passes {

/// A value as a sum over labels of a product of factors, whatever op says so: einsum
/// without masks, mul, reduce_sum, and what only lays out axes anew. Labels are numbers
/// of this term; an axis of extent 1 has none.
struct ProductTerm {
  static constexpr int kNoLabel = -1;

  struct Factor {
    Value base;
    std::vector<int> labels;  ///< of each axis of base
    /// Nothing but this term needs base.
    bool is_exclusive = false;
  };

  std::vector<Factor> factors;
  std::vector<int> result;            ///< of each axis of the value; may be in no factor
  std::vector<std::int64_t> extents;  ///< of each label, above 1

  int new_label(std::int64_t extent);
  bool has_label(int label) const;

  /// Puts the term of a factor's base in its place. False, and no change, where a label
  /// would be summed that no factor has.
  bool substitute(std::size_t factor, const ProductTerm& inner, const std::vector<std::uint32_t>& uses);
};

/// The node as a term of its operands; nothing for other ops, other dtypes and empty tensors.
std::optional<ProductTerm> term_of(const Program& program, Value node,
                                   const std::vector<std::uint32_t>& uses);

/// Whether the node only lays out axes anew, which costs nothing.
bool is_layout(const Program& program, Value node);

/// Replaces every factor that is a layout of another value by that value.
void look_through_layouts(const Program& program, ProductTerm& term, const std::vector<std::uint32_t>& uses);

}  // namespace loipe::passes
