// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"

namespace loipe::passes {

/// Nodes that no output needs vanish.
///
/// Before: a program that verifies.
/// After:  every node is an argument or leads to an output. Arguments stay, used or
///         not: they are the program's interface. All values keep their bits.
/// Here:   after all passes that leave what they replaced.
Program dead_code(const Program& program);

}  // namespace loipe::passes
