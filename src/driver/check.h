// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "driver/pattern_check.h"

namespace loipe {

struct CheckOptions {
  TaskJacobianOptions jacobian;
  std::string against;  ///< the other order
  int directions = 3;
  std::uint64_t seed = 1;
  std::optional<double> tolerance;          ///< absent: by what is compared and by dtype
  std::optional<std::string> pattern_file;  ///< declared patterns to compare with
};

/// One comparison.
struct CheckLine {
  std::string what;
  double deviation = 0;
  double tolerance = 0;
  bool holds() const { return deviation <= tolerance; }
};

struct CheckReport {
  std::vector<CheckLine> lines;
  std::vector<BlockZeros> zeros;            ///< in float64
  std::vector<PatternDifference> patterns;  ///< only with a pattern file
};

/// Compares the Jacobian at the inputs with
///  * that of another elimination order, in float64, entry by entry;
///  * central differences of the function, in float64, along random directions v: J v
///    of every output, and <J^T w, v> against <w, difference> for a random cotangent w.
/// Deviations are relative to what the entries' magnitudes could add up to. Counts zeros,
/// structural ones apart from those that happen to be zero, and compares patterns.
CheckReport check(const Subject& subject, const CheckOptions& options, std::span<const Tensor> inputs);

}  // namespace loipe
