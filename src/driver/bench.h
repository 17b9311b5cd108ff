// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver/counts.h"
#include "driver/machine.h"
#include "driver/sparse_blocks.h"
#include "tasks/inputs.h"

namespace loipe {

struct BenchOptions {
  std::vector<std::string> orders;
  InputKind inputs = InputKind::rich;
  DType dtype = DType::f32;
  std::string backend = "jit";
  BlockValues block_values = BlockValues::all;
  int threads = 0;
  bool flush_subnormals = false;      ///< see BackendOptions
  std::vector<std::string> disabled;  ///< see CompileOptions
  /// Runs of each row; absent: as many as the time allows.
  std::optional<std::int64_t> repetitions;
};

/// Milliseconds of the median run in the published experiments (batch 1).
struct PublishedTimes {
  double cpu, gpu;
};

struct BenchRow {
  std::string order;
  OrderCounts counts;
  std::int64_t flops = 0;  ///< scalar operations of one run, all examples
  double compile_ms = 0;   ///< from the start of tracing to the callable
  double median_ms = 0, p10_ms = 0, p90_ms = 0, min_ms = 0;
  std::int64_t repetitions = 0;
  double gflops = 0;            ///< flops / median
  double fraction_of_peak = 0;  ///< of MachineSpeed::fma_gflops
  std::size_t peak_bytes = 0;
  /// The largest deviation from the reference, see deviation.h.
  double max_rel_error = 0;
  std::optional<PublishedTimes> published_ms;
};

struct BenchResult {
  std::string task;
  std::int64_t scale = 1, batch = 1;
  DType dtype = DType::f32;
  InputKind inputs = InputKind::rich;
  bool flush_subnormals = false;
  BlockValues block_values = BlockValues::all;
  int threads = 0;
  Machine machine;
  MachineSpeed speed;
  std::vector<BenchRow> rows;
};

/// What is being done, row by row.
using StageNote = std::function<void(const std::string&)>;

/// Proves and times the Jacobian of a task in each order. Each row is compared with the
/// Jacobian in float64 and reverse order at the same inputs before it is timed. The
/// rows are timed in turns, so that a change of the machine's speed meets all of them.
BenchResult bench(const Subject& subject, const BenchOptions& options, const StageNote& note = {});

}  // namespace loipe
