// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/program.h"

// What laws have in common.

namespace loipe::testing {

/// Positions of the arguments that have derivatives.
std::vector<std::size_t> floating_arguments(const Program& program);

/// What differs by more than `tolerance`, relative to the largest of all numbers (small
/// ones may be differences of intermediate values of that size); "" if nothing does.
std::string difference(std::span<const Tensor> values, std::span<const Tensor> expected, double tolerance);

}  // namespace loipe::testing
