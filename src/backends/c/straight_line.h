// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/c/source.h"
#include "backends/scalar/scalar_program.h"

namespace loipe::c {

/// One statement per scalar operation.
Source emit_straight_line(const scalar::Program& program, const SourceNames& names,
                          const std::vector<Pattern>& patterns);

}  // namespace loipe::c
