// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"

namespace loipe::passes {

/// Ops whose record says how they are made of others (OpDef::expand) are written in those,
/// so that the passes and back ends behind see only ops that they know: the exponentials of a
/// softmax are shared with those of its derivative, a gelu fuses with its neighbours.
///
/// Exactness: up to rounding; at special points the same values.
///
/// Before: a program that verifies.
/// After:  no node has an op with an expansion, and no operation is added.
/// Here:   first; local Jacobian rules have seen the ops themselves before.
Program expansion(const Program& program);

}  // namespace loipe::passes
