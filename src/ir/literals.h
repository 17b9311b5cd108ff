// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/tensor.h>

#include <string>

#include "ir/attributes.h"
#include "ir/lexer.h"

namespace loipe {

// The parts of the textual form below nodes. Each takes its tokens from the lexer
// and throws UserError with line and column; a type too large to be addressed is
// a ResourceError. Memory stays proportional to the text.

/// "f32[4,4]".
TensorType parse_type(Lexer& lexer);

/// "{axes=[1], y=3}", the braces included; what Attributes::print() prints.
Attributes parse_attributes(Lexer& lexer);

/// The meaning of a token between double quotes (see quote() in base/text.h).
std::string unquote(const Lexer& lexer, const Token& token);

}  // namespace loipe
