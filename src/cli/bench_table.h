// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/json.h"
#include "driver/bench.h"

namespace loipe::cli {

/// The result for people: machine, aligned rows, and what the columns mean.
std::string bench_text(const BenchResult& result);
/// The result for programs.
Json bench_json(const BenchResult& result);

std::string to_string(InputKind inputs);
std::string speed_text(const Machine& machine, const MachineSpeed& speed, DType dtype, int threads);
Json machine_json(const Machine& machine, const MachineSpeed& speed);

}  // namespace loipe::cli
