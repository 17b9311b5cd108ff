// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/step.h"
#include "backends/cpu/strided_view.h"

namespace loipe::cpu {

/// out[results] = sum of the product of the factors over all terms whose masks hold;
/// a term with a false mask is skipped before anything is multiplied. All views
/// but `out` have the shape of out followed by the summed extents.
enum class MaskedResults : std::uint8_t {
  all,
  nan,  ///< only those that are NaN in `out`; the others stay
};
std::unique_ptr<Step> make_masked_sum_step(std::vector<StridedView> factors, std::vector<StridedView> masks,
                                           const StridedView& out, MaskedResults which = MaskedResults::all);

}  // namespace loipe::cpu
