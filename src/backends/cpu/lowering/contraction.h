// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "backends/cpu/lowering/lowering.h"
#include "jacobian/coordinate.h"

namespace loipe::cpu {

/// A floating factor of a product: a view whose axes are distinct labels.
struct Factor {
  StridedView view;
  std::vector<Label> labels;
};

/// out[result] = sum over all other labels of the product of the factors. `out` is
/// contiguous with the axes `result`. More than two factors are multiplied two at a time.
void emit_contraction(Lowering& lowering, std::vector<Factor> factors, const std::vector<Label>& result,
                      Extents extents, const StridedView& out);

/// The same for two factors without one-sided sums: every label that the result
/// lacks is in both.
void emit_pair_product(Lowering& lowering, const Factor& a, const Factor& b, const std::vector<Label>& result,
                       Extents extents, const StridedView& out);

/// The view with every label once: a repeated one is a diagonal.
Factor make_factor(const StridedView& view, const std::vector<Label>& axes, Extents extents);

}  // namespace loipe::cpu
