// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/scalar/scalar_program.h"
#include "ir/program.h"

namespace loipe::scalar {

/// More scalar nodes than this are not worth straight-line code (code size).
inline constexpr std::int64_t kLargestProgram = 4'000'000;

/// Why the program cannot become straight-line scalar code, one reason a line:
/// several floating dtypes, integer arithmetic on arguments, indices that are only
/// known at run time, ops without scalar form, more than `largest` elements and
/// operations. Empty if it can.
std::vector<std::string> reasons_against(const loipe::Program& program,
                                         std::int64_t largest = kLargestProgram);

/// Every tensor element as a value of its own, scheduled. Movement ops (reshape,
/// transpose, slice, gather, ...) only rename; sums and products unroll.
Program scalarize(const loipe::Program& program);

}  // namespace loipe::scalar
