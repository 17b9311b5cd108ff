// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"

namespace loipe::c {

/// How the value of a node exists in code of loops.
enum class Form : std::uint8_t {
  unused,   ///< no output needs it
  literal,  ///< a constant of equal elements
  table,    ///< a static table
  argument,
  output,
  work,     ///< scratch memory
  alias,    ///< the memory of its operand, reshaped
  inlined,  ///< an expression in the loops of another node
};

struct PlannedValue {
  Form form = Form::unused;
  std::size_t number = 0;  ///< of an argument or output
};

/// The forms of all values. Elementwise nodes are inlined where that computes nothing twice: in one loop
/// nest, once for each element. Movement is inlined everywhere but where a pointer to the elements is needed.
std::vector<PlannedValue> plan_values(const Program& program);

}  // namespace loipe::c
