// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>

#include "cli/terminal.h"

namespace loipe::cli {

/// What a command does after its options are parsed; returns the exit code.
using Action = std::function<int()>;

/// One subcommand. A new one is one file and one line in the list of command.cc.
struct Command {
  const char* name;
  const char* summary;
  const char* examples;
  /// Declares the options; the result reads them when it is called.
  Action (*declare)(CLI::App& app, Terminal& terminal);
};

extern const Command kTasksCommand;
extern const Command kOpsCommand;
extern const Command kInfoCommand;
extern const Command kCountCommand;
extern const Command kJacobianCommand;
extern const Command kJvpCommand;
extern const Command kVjpCommand;
extern const Command kGradientCommand;
extern const Command kHessianCommand;
extern const Command kHvpCommand;
extern const Command kAttentionCommand;
extern const Command kTransformerCommand;
extern const Command kBenchCommand;
extern const Command kCheckCommand;
extern const Command kExplainCommand;
extern const Command kSearchCommand;
extern const Command kTrainCommand;

std::span<const Command* const> all_commands();

}  // namespace loipe::cli
