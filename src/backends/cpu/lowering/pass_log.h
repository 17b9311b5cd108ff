// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <chrono>
#include <string>
#include <vector>

#include "backends/backend_passes.h"

namespace loipe::cpu {

/// What each pass did while a program was lowered. The passes work on parts of the
/// program in turns, so their times and counts add up from many pieces.
class PassLog {
 public:
  PassLog();

  /// Until the scope ends, time counts for this pass and for none around it.
  class Scope {
   public:
    Scope(PassLog* log, BackendPass pass);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PassLog* log_;
    BackendPass outer_ = BackendPass::count;
  };

  void count(BackendPass pass, std::int64_t before, std::int64_t after);
  void write(BackendPass pass, const std::string& text);

  /// Of the passes that ran.
  std::vector<BackendPassReport> reports(const DisabledPasses& disabled) const;

 private:
  using Clock = std::chrono::steady_clock;
  /// Time since the last switch belongs to the pass that was running.
  BackendPass switch_to(BackendPass pass);
  BackendPassReport& of(BackendPass pass) { return entries_[static_cast<std::size_t>(pass)]; }

  std::vector<BackendPassReport> entries_;
  std::bitset<kBackendPasses> has_run_;
  BackendPass running_ = BackendPass::count;  ///< count: none of them
  Clock::time_point since_;
};

}  // namespace loipe::cpu
