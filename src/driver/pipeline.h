// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "accumulation/accumulate.h"
#include "backends/backend.h"
#include "driver/sparse_blocks.h"
#include "passes/runner.h"

namespace loipe {

struct CompileOptions {
  AccumulationRequest request = {};
  PassOptions passes = {};
  /// Names of passes to leave out, those of programs and those of the back end; UserError
  /// for a name that none has.
  std::vector<std::string> disabled = {};
  std::string backend = "jit";
  BackendOptions backend_options = {};
  bool recomputes = false;  ///< see DerivativeOptions::recompute
  bool reports_attention = false;  ///< see DerivativeOptions::attention_reports
  BlockValues block_values = BlockValues::all;
  /// Given the optimised program: BackendOptions::reserved_bytes.
  std::function<std::size_t(const Program&)> reserved_bytes = {};
};

struct StageTime {
  std::string stage;
  double seconds;
};

/// Everything that compiling leaves behind: each stage can be printed.
struct Compilation {
  Accumulation accumulation;
  std::vector<SparsePattern> patterns;      ///< of all blocks; only for BlockValues::entries
  std::vector<StructuredBlock> structures;  ///< of all blocks; only for BlockValues::terms
  Program optimised;
  OpCost executed;  ///< of one run of `optimised`, primal part included
  OpCost folded;    ///< what it executes beyond the optimised primal program
  std::vector<PassReport> passes;
  std::vector<StageTime> times;
  std::unique_ptr<Executable> executable;
};

/// The flow: accumulate (linearize and eliminate), optimise, compile.
Compilation compile(const Program& primal, const CompileOptions& options);

/// The same without a back end: for counting and for looking at stages.
Compilation accumulate_and_optimise(const Program& primal, const CompileOptions& options);

/// What is executed beyond one run of the optimised primal program.
OpCost executed_beyond(const OpCost& executed, const Program& primal, const PassOptions& passes = {});

/// The passes of programs, then those of back ends, in the order in which they run.
std::vector<std::string> all_pass_names();
/// UserError for a name that no pass has, with the nearest one.
void check_pass_names(const std::vector<std::string>& names);

/// CompileOptions::passes and backend_options, each with those of its passes that are disabled.
PassOptions options_of_passes(const CompileOptions& options);
BackendOptions options_of_back_end(const CompileOptions& options);

/// Positions of all floating arguments.
std::vector<std::size_t> floating_arguments(const Program& program);

}  // namespace loipe
