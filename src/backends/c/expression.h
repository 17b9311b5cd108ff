// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "backends/scalar/scalar_program.h"

namespace loipe::c {

/// A literal that reads back exactly.
std::string literal(double value, DType dtype);

/// The op in C, on numbers of the dtype; operand(k) is the text of operand k. Truth
/// values are numbers that are not 0. Functions are those of libm.
std::string expression(scalar::Op op, DType dtype, const std::function<std::string(int)>& operand);

}  // namespace loipe::c
