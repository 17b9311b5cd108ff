// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/json.h"
#include "driver/bench_peak.h"

namespace loipe::cli {

/// For people: one table of arithmetic, one of memory.
std::string peak_text(const PeakResult& result);
/// For programs: the machine and threads as `bench` gives them, then one row for each
/// measurement.
Json peak_json(const PeakResult& result);

}  // namespace loipe::cli
