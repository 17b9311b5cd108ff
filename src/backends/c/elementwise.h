// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/c/affine.h"
#include "ir/program.h"

namespace loipe::c {

class Block;

/// Whether every element is computed from the elements of the operands at its place, or from that place
/// alone (iota).
bool is_elementwise(std::string_view op);

/// The element of v at the index as an expression in the operands' elements, which are variables, literals or
/// elements of memory. Writes lines of its own for powers.
std::string elementwise(Block& block, Value v, const std::vector<std::string>& x, const Indices& at);

/// The elements of a node that is known before the run.
Tensor table_of(const Program& program, Value v);

}  // namespace loipe::c
