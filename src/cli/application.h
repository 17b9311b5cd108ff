// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace loipe::cli {

/// Runs one command line (without the program's name) and returns its exit code: 0, or
/// that of the error, which is told in one sentence on standard error.
int run_application(const std::vector<std::string>& arguments);

}  // namespace loipe::cli
