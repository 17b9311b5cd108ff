// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <cstddef>
#include <span>

namespace loipe {

/// Blocks below this part of the largest one are taken for zeros with rounding errors.
inline constexpr double kNegligible = 1e-6;

/// The deviation of `results` from `reference`: of every entry, relative to the largest
/// entry of its tensor; but of a Jacobian block (the tensors from `first_block` on) that
/// is smaller than `negligible` of the largest block, relative to that.
double max_relative_error(std::span<const Tensor> results, std::span<const Tensor> reference,
                          std::size_t first_block, double negligible = kNegligible);

}  // namespace loipe
