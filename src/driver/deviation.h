// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <cstddef>
#include <span>

namespace loipe {

/// The deviation of `results` from `reference`: of every entry, relative to the largest
/// entry of its tensor; but of a tensor that is smaller than 1e-6 of the largest of all
/// Jacobian blocks (the tensors from `first_block` on), relative to that.
double max_relative_error(std::span<const Tensor> results, std::span<const Tensor> reference,
                          std::size_t first_block);

}  // namespace loipe
