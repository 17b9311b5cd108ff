// SPDX-License-Identifier: Apache-2.0
#include "passes/runner.h"

#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "ir/verifier.h"

namespace loipe {

namespace {

void check_names(const std::vector<std::string>& disabled, std::span<const Pass> passes) {
  std::vector<std::string> names;
  for (const Pass& pass : passes) names.emplace_back(pass.name);
  for (const std::string& name : disabled)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw UserError("there is no pass '" + name + "' to disable" + did_you_mean(name, names) +
                      "; the passes are " + join(names, ", "));
}

void verify_for(const std::string& place, const Program& program) {
  try {
    verify(program);
  } catch (const InternalError& error) {
    throw Error(ErrorCode::internal, place + ": " + error.what());
  }
}

Program timed(const Pass& pass, const Program& program, PassReport& report) {
  const auto start = std::chrono::steady_clock::now();
  Program result = pass.run(program);
  report = {pass.name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
            program.size(), result.size()};
  return result;
}

}  // namespace

Program run_passes(Program program, std::span<const Pass> passes, const PassOptions& options,
                   std::vector<PassReport>* reports) {
  check_names(options.disabled, passes);
  if (options.verify_each) verify_for("before all passes", program);
  for (const Pass& pass : passes) {
    if (std::find(options.disabled.begin(), options.disabled.end(), pass.name) != options.disabled.end())
      continue;
    PassReport report;
    program = timed(pass, program, report);
    if (options.verify_each) verify_for("after pass '" + std::string(pass.name) + "'", program);
    if (options.dump) options.dump(pass.name, program);
    if (reports) reports->push_back(report);
  }
  return program;
}

Program run_passes(Program program, const PassOptions& options, std::vector<PassReport>* reports) {
  return run_passes(std::move(program), all_passes(), options, reports);
}

}  // namespace loipe
