// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "ir/program.h"

namespace loipe {

/// A program cut in two: what can be computed before the late arguments are known, and what
/// cannot.
struct SplitProgram {
  /// Takes the early arguments; returns the early outputs, then the residuals.
  Program early;
  /// Takes the residuals, "residual.0" and so on, then the late arguments; returns the late
  /// outputs.
  Program late;
};

/// Arguments from `first_late_argument` and outputs from `first_late_output` on are late. No
/// early output may depend on a late argument. Residuals are the values at the cut: those
/// that the late part uses and that depend on early arguments alone. What depends on no
/// argument is computed on both sides.
SplitProgram split_program(const Program& program, std::size_t first_late_argument,
                           std::size_t first_late_output);

}  // namespace loipe
