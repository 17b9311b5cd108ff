// SPDX-License-Identifier: Apache-2.0
#include "driver/pipeline.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "base/text.h"
#include "driver/attention_reports.h"
#include "driver/recompute.h"

namespace loipe {

namespace {

/// Runs one stage and notes its time.
template <class Stage>
auto timed(std::vector<StageTime>& times, std::string name, Stage stage) {
  const auto start = std::chrono::steady_clock::now();
  auto result = stage();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  times.push_back({std::move(name), elapsed.count()});
  return result;
}

void write_entries(Compilation& compilation, const Program& primal, const AccumulationRequest& request) {
  compilation.patterns = block_patterns(primal, request, compilation.accumulation);
  compilation.accumulation.program =
      with_entries(primal, request, compilation.accumulation, compilation.patterns);
}

void write_terms(Compilation& compilation, const Program& primal, const AccumulationRequest& request) {
  ProgramOfTerms terms = with_terms(primal, request, compilation.accumulation);
  compilation.structures = std::move(terms.blocks);
  compilation.accumulation.program = std::move(terms.program);
}

struct NamesByKind {
  std::vector<std::string> of_programs, of_back_ends;
};

/// UserError for a name that neither has.
NamesByKind sorted_by_kind(const std::vector<std::string>& names) {
  const std::vector<std::string> known = all_pass_names();
  NamesByKind result;
  for (const std::string& name : names) {
    const auto place = std::ranges::find(known, name) - known.begin();
    if (place == std::ssize(known))
      throw UserError("there is no pass '" + shortened(name) + "' to disable" + did_you_mean(name, known) +
                      "; the passes are " + join(known, ", "));
    (place < std::ssize(all_passes()) ? result.of_programs : result.of_back_ends).push_back(name);
  }
  return result;
}

}  // namespace

std::vector<std::size_t> floating_arguments(const Program& program) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < program.arguments().size(); ++i)
    if (is_floating(program.type(program.arguments()[i]).dtype)) positions.push_back(i);
  return positions;
}

OpCost executed_beyond(const OpCost& executed, const Program& primal, const PassOptions& passes) {
  const OpCost part = count_operations(run_passes(primal, passes));
  auto rest = [](std::int64_t a, std::int64_t b) { return std::max<std::int64_t>(a - b, 0); };
  return {rest(executed.multiplications, part.multiplications), rest(executed.additions, part.additions),
          rest(executed.divisions, part.divisions), rest(executed.functions, part.functions)};
}

std::vector<std::string> all_pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : all_passes()) names.emplace_back(pass.name);
  for (const BackendPassInfo& pass : all_backend_passes()) names.emplace_back(pass.name);
  return names;
}

void check_pass_names(const std::vector<std::string>& names) { sorted_by_kind(names); }

PassOptions options_of_passes(const CompileOptions& options) {
  PassOptions passes = options.passes;
  for (std::string& name : sorted_by_kind(options.disabled).of_programs)
    passes.disabled.push_back(std::move(name));
  return passes;
}

BackendOptions options_of_back_end(const CompileOptions& options) {
  BackendOptions result = options.backend_options;
  result.disabled = DisabledPasses(sorted_by_kind(options.disabled).of_back_ends);
  return result;
}

Compilation accumulate_and_optimise(const Program& primal, const CompileOptions& options) {
  PassOptions passes = options_of_passes(options);
  Compilation result;
  // Linearize, eliminate in the given order, record: the Jacobian as a program.
  AccumulationRequest request = options.request;
  request.writes_blocks = options.block_values == BlockValues::all;
  result.accumulation = timed(result.times, "accumulate", [&] { return accumulate(primal, request); });
  if (options.block_values == BlockValues::entries)
    timed(result.times, "entries", [&] { return write_entries(result, primal, request), 0; });
  if (options.block_values == BlockValues::terms)
    timed(result.times, "terms", [&] { return write_terms(result, primal, request), 0; });
  // Optimise that program; its meaning stays.
  result.optimised = timed(result.times, "passes",
                           [&] { return run_passes(result.accumulation.program, passes, &result.passes); });
  if (options.reports_attention) result.optimised = with_attention_reports(result.optimised);
  result.executed = count_operations(result.optimised);
  passes.dump = {};  // the primal program is not part of the flow
  result.folded = executed_beyond(result.executed, primal, passes);
  return result;
}

Compilation compile(const Program& primal, const CompileOptions& options) {
  const Backend& backend = find_backend(options.backend);
  Compilation result = accumulate_and_optimise(primal, options);
  BackendOptions backend_options = options_of_back_end(options);
  if (options.reserved_bytes) backend_options.reserved_bytes = options.reserved_bytes(result.optimised);
  // Turn the optimised program into something that runs.
  result.executable = timed(result.times, "back end", [&] {
    return options.recomputes ? compile_recomputing(result, backend, backend_options)
                              : backend.compile(result.optimised, backend_options);
  });
  return result;
}

}  // namespace loipe
