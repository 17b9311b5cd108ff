// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "ir/program.h"

namespace loipe {

/// The value of one node from the values of its operands.
Tensor evaluate_node(const Program& program, Value node, std::span<const Tensor* const> operands);

/// The reference interpreter: evaluates node after node by the ops' own naive
/// evaluation. It is the oracle of every test and stays slow and simple. Each
/// value is freed after its last use. Arguments must have exactly the declared
/// types (UserError).
std::vector<Tensor> evaluate(const Program& program, std::span<const Tensor> arguments);

/// Throws UserError unless the tensors fit the program's arguments one by one.
void check_arguments(const Program& program, std::span<const Tensor> arguments);

}  // namespace loipe
