// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace loipe::cli {

/// From now on SIGINT and SIGTERM end the process at once, with exit code 130 and 143.
void install_interrupt_handler();

/// While one lives, an interrupt waits: around writing a file, so that its temporary
/// does not stay behind. What arrived in between takes effect at the end.
class UninterruptedSection {
 public:
  UninterruptedSection();
  ~UninterruptedSection();
  UninterruptedSection(const UninterruptedSection&) = delete;
  UninterruptedSection& operator=(const UninterruptedSection&) = delete;
};

}  // namespace loipe::cli
