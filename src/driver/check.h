// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "driver/task_jacobian.h"

namespace loipe {

struct CheckOptions {
  TaskJacobianOptions jacobian;
  std::string against;  ///< the other order
  int directions = 3;
  std::uint64_t seed = 1;
  std::optional<double> tolerance;  ///< absent: by what is compared and by dtype
};

/// One comparison.
struct CheckLine {
  std::string what;
  double deviation = 0;
  double tolerance = 0;
  bool holds() const { return deviation <= tolerance; }
};

/// Compares the Jacobian at the inputs with
///  * that of another elimination order, in float64, entry by entry;
///  * central differences of the function, in float64, along random directions v: J v
///    of every output, and <J^T w, v> against <w, difference> for a random cotangent w.
/// Deviations are relative to what the entries' magnitudes could add up to.
std::vector<CheckLine> check(const Subject& subject, const CheckOptions& options,
                             std::span<const Tensor> inputs);

}  // namespace loipe
