// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "ir/op_def.h"

namespace loipe::ops {

/// The error that a value of that class may have, relative to the largest entry
/// involved: a multiple of the dtype's rounding unit.
inline double relative_tolerance(Tolerance tolerance, DType dtype) {
  const double epsilon = dtype == DType::f32 ? double{std::numeric_limits<float>::epsilon()}
                                             : std::numeric_limits<double>::epsilon();
  switch (tolerance) {
    case Tolerance::exact: return 0;
    case Tolerance::arithmetic: return 16 * epsilon;
    case Tolerance::function: return 64 * epsilon;
  }
  throw InternalError("unknown tolerance class");
}

}  // namespace loipe::ops
