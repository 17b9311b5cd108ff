// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "backends/kernel/kernel.h"

namespace loipe::kernel {

/// Runs the tiles begin..end-1 one index after the other: what the functions of the
/// dialects must agree with. Functions are computed in double precision and rounded.
void interpret(const Kernel& kernel, std::byte* const* bases, std::int64_t begin, std::int64_t end);

}  // namespace loipe::kernel
