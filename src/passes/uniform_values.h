// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "ir/program.h"

namespace loipe::passes {

/// Which values of a growing program are known to hold one number everywhere:
/// constants of (bitwise) equal elements, and what only moves their elements.
/// Linear in the program, whatever is asked.
class UniformValues {
 public:
  /// The number; an i64 beyond 2^53 is rounded.
  std::optional<double> of(const Program& program, Value value);

 private:
  std::vector<std::optional<double>> known_;  // of the first nodes of the program
};

}  // namespace loipe::passes
