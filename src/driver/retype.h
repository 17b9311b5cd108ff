// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"

namespace loipe {

/// The same program with all floating values, constants included, in `dtype`.
Program retyped(const Program& program, DType dtype);

/// Whether the program holds both f32 and f64 values.
bool mixes_precisions(const Program& program);

}  // namespace loipe
