// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace loipe::cli {

namespace {

constexpr int kSignalExit = 128;  // 130 for SIGINT

std::atomic<bool> is_protected{false};
std::atomic<int> pending_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "a signal handler may only use lock-free atomics");

[[noreturn]] void leave(int signal) {
  constexpr char kMessage[] = "loipe: interrupted\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  ::_exit(kSignalExit + signal);
}

extern "C" void handle_interrupt(int signal) {
  if (is_protected) pending_signal = signal;
  else leave(signal);
}

}  // namespace

void install_interrupt_handler() {
  std::signal(SIGINT, handle_interrupt);
  std::signal(SIGTERM, handle_interrupt);
}

UninterruptedSection::UninterruptedSection() { is_protected = true; }

UninterruptedSection::~UninterruptedSection() {
  is_protected = false;
  if (pending_signal != 0) leave(pending_signal);
}

}  // namespace loipe::cli
