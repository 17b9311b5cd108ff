// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

namespace loipe::cli {

std::span<const Command* const> all_commands() {
  static constexpr const Command* kCommands[] = {
      &kTasksCommand,     &kOpsCommand,         &kInfoCommand,     &kCountCommand,   &kJacobianCommand,
      &kJvpCommand,       &kVjpCommand,         &kGradientCommand, &kHessianCommand, &kHvpCommand,
      &kAttentionCommand, &kTransformerCommand, &kBenchCommand,    &kSearchCommand,  &kTrainCommand,
      &kCheckCommand,     &kExplainCommand};
  return kCommands;
}

}  // namespace loipe::cli
