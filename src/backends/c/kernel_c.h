// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "backends/kernel/kernel.h"

namespace loipe::c {

/// The kernel as a function of C11 of the signature
///
///   void NAME(char* const* bases, int64_t begin, int64_t end)
///
/// which computes the tiles begin..end-1: plain loops and libm.
std::string emit_kernel(const kernel::Kernel& kernel, const std::string& name);

}  // namespace loipe::c
