// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "backends/scalar/scalar_program.h"

namespace loipe::c {

/// The C type of elements of that dtype; a bool is a byte, 0 or 1.
const char* type_of(DType dtype);

/// A number of the floating dtype that reads back exactly, in parentheses if it has a sign.
std::string literal(double value, DType dtype);
/// The same for an element of a tensor of any dtype.
std::string literal_at(const Tensor& tensor, std::int64_t position);

/// The C expression of one scalar op; operand(k) is the text of its k-th operand,
/// a variable or a literal.
std::string expression(scalar::Op op, DType dtype, const std::function<std::string(int)>& operand);

}  // namespace loipe::c
