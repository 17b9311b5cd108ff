// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/c/source.h"

namespace loipe::c {

/// One loop nest per node that is not inlined in others; the values between them share scratch
/// memory. The program has no op with an expansion.
Source emit_loops(const Program& program, const SourceNames& names, const std::vector<Pattern>& patterns);

}  // namespace loipe::c
