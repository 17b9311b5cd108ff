// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/program.h"

namespace loipe::ops {

/// The number that every entry of this floating value is known to be: a constant
/// of equal entries, also broadcast, reshaped or transposed. A scalar literal and
/// its broadcast are the common cases.
std::optional<double> uniform_constant(const Program& program, Value value);

}  // namespace loipe::ops
