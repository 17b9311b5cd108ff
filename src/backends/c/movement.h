// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/c/affine.h"
#include "ir/program.h"

namespace loipe::c {

/// Whether every element is one element of operand 0 at an index that is affine in its own:
/// broadcasting, transposing, slicing, reversing, adding and dropping axes of extent 1, gathering
/// at positions that are known and inside.
bool is_movement(const Program& program, Value v);

/// The index in operand 0 of the element of v at this one.
Indices moved(const Program& program, Value v, const Indices& at);

}  // namespace loipe::c
