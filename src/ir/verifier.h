// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"

namespace loipe {

/// Throws InternalError with the lines of the program around the node unless
/// every operand is defined before its use, arguments and constants are
/// consistent, every type is the one that the op infers, and the outputs exist.
/// Run after every pass; it takes linear time.
void verify(const Program& program);

}  // namespace loipe
