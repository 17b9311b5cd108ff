// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"

namespace loipe::passes {

/// Nodes that compute the same are computed once: value numbering over op,
/// operands and attributes. Constants take part, arguments do not.
///
/// The operands of add, mul, max, min, eq, ne, and, or, xor have no order here: x+y and
/// y+x are the same. All values keep their bits, but for the two things that IEEE 754
/// lets depend on the order: which NaN comes out of two, and which zero is the
/// larger (or smaller) of +0 and -0.
///
/// Before: a program that verifies.
/// After:  no two nodes have the same op, attributes and operands. The first one of
///         its kind stays where it is and as it is.
/// Here:   after `algebraic`, whose normal forms make equal values look equal, and
///         before `reciprocals`, which counts the divisions by one value.
Program common_subexpressions(const Program& program);

}  // namespace loipe::passes
