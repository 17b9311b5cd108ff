// SPDX-License-Identifier: Apache-2.0
#include "driver/recompute.h"

#include <algorithm>
#include <optional>

#include "ir/verifier.h"
#include "ops/op_list.h"
#include "passes/recomputation/recomputation.h"

namespace loipe {

namespace {

/// Larger programs are not tried: they are of scalars, and would be compiled many times.
constexpr std::size_t kMostNodes = 100'000;

/// What may be computed again, in the order in which it costs more time.
std::vector<RecomputationOptions> recomputations(const Program& program, std::size_t forward_outputs) {
  std::vector<RecomputationOptions> all;
  for (bool keeps_expensive : {true, false})
    for (std::size_t stride = 1;; stride *= 2) {
      const std::size_t segments = count_segments(program, forward_outputs, stride);
      if (segments == 0) break;
      if (stride == 1 && segments > 3)
        all.push_back({forward_outputs, stride, segments / 2, keeps_expensive});
      all.push_back({forward_outputs, stride, segments, keeps_expensive});
    }
  return all;
}

/// Reports of attention, which come last.
std::size_t count_reports(const Program& program) {
  return static_cast<std::size_t>(std::ranges::count_if(
      program.outputs(), [&](Value output) { return &program.op(output) == &ops::op_attention_report; }));
}

}  // namespace

std::unique_ptr<Executable> compile_recomputing(Compilation& compilation, const Backend& backend,
                                                const BackendOptions& options) {
  const Accumulation& accumulation = compilation.accumulation;
  const std::size_t outputs = compilation.optimised.outputs().size();
  const bool has_blocks = accumulation.blocks.size() < outputs;  // and values before them
  std::optional<MemoryLimitExceeded> least;
  try {
    return backend.compile(compilation.optimised, options);
  } catch (const MemoryLimitExceeded& error) {
    if (!has_blocks || compilation.optimised.size() > kMostNodes) throw;
    least = error;
  }
  const std::size_t values = outputs - accumulation.blocks.size() - count_reports(compilation.optimised);
  for (const RecomputationOptions& choice : recomputations(compilation.optimised, values)) try {
      Program program = with_recomputation(compilation.optimised, choice);
      verify(program);
      std::unique_ptr<Executable> executable = backend.compile(program, options);
      compilation.optimised = std::move(program);
      compilation.executed = count_operations(compilation.optimised);
      return executable;
    } catch (const MemoryLimitExceeded& error) {
      if (error.needed_bytes() < least->needed_bytes()) least = error;
    }
  throw *least;
}

}  // namespace loipe
