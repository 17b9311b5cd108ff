// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"

namespace loipe::passes {

/// Nodes whose operands are all known become constants, computed by the op's own
/// reference evaluation, so that all values keep their bits; NaN and infinities are
/// values like any other.
///
/// Compact nodes are known but stay as they are: iota, and broadcast_in_dim of a
/// constant, which say in one line what a constant would say in many numbers. A
/// result that is one number everywhere becomes such a broadcast.
///
/// Only small things are folded: at most 4096 elements in each operand and in the
/// result, and at most 2^20 operations, so that the pass stays linear and programs
/// do not grow into data.
///
/// Before: a program that verifies.
/// After:  every small node without an argument behind it is a constant or compact.
/// Here:   first, since the constants it makes are what the identities of
///         `algebraic` look for.
Program constant_folding(const Program& program);

}  // namespace loipe::passes
