// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "passes/pass.h"

namespace loipe {

struct PassOptions {
  /// Names of passes to leave out; UserError for a name that no pass has.
  std::vector<std::string> disabled;
  /// Verify the program before the first pass and after each one. A violation is
  /// an error of code `internal` that names the pass.
  bool verify_each = false;
  /// Called with the program after each pass.
  std::function<void(std::string_view pass, const Program&)> dump;
};

/// What one pass did.
struct PassReport {
  std::string_view name;
  double seconds = 0;  ///< of the pass alone, without verifying and dumping
  std::size_t nodes_before = 0;
  std::size_t nodes_after = 0;
};

/// Runs all passes of the list that are not disabled. The reports, one for each
/// pass that ran, are appended to `reports` when it is given.
Program run_passes(Program program, const PassOptions& options = {},
                   std::vector<PassReport>* reports = nullptr);

/// The same with another list: other passes, another order, one pass alone.
Program run_passes(Program program, std::span<const Pass> passes, const PassOptions& options = {},
                   std::vector<PassReport>* reports = nullptr);

}  // namespace loipe
