// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <loipe/error.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace loipe::cli {

namespace {

void write_error(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

/// The convention of no-color.org: set and not empty.
bool wants_no_color() {
  const char* value = std::getenv("NO_COLOR");
  return value != nullptr && *value != '\0';
}

}  // namespace

Terminal::Terminal()
    : is_terminal_(::isatty(STDERR_FILENO) == 1), has_color_(is_terminal_ && !wants_no_color()) {}

void Terminal::note(std::string_view text) const {
  if (!quiet_) write_error("loipe: " + std::string(text) + "\n");
}

void Terminal::progress(std::string_view what, std::int64_t done, std::int64_t all) const {
  constexpr std::int64_t kWidth = 40;
  if (quiet_ || !is_terminal_ || all <= 1) return;
  const std::int64_t percent = 100 * done / all;
  if (std::exchange(drawn_percent_, percent) == percent) return;
  const auto filled = static_cast<std::size_t>(kWidth * done / all);
  const std::string bar = std::string(filled, '=') + std::string(kWidth - filled, ' ');
  const std::string counts = std::to_string(done) + "/" + std::to_string(all);
  write_error("\rloipe: " + std::string(what) + " [" + bar + "] " + counts + (done == all ? "\n" : ""));
}

void Terminal::error(std::string_view text) const {
  const std::string name = has_color_ ? "\033[1;31mloipe:\033[0m " : "loipe: ";
  write_error(name + std::string(text) + "\n");
}

void print(std::string_view text) {
  const bool is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!is_written || std::fflush(stdout) != 0)
    throw FileError(std::string("standard output cannot be written: ") + std::strerror(errno));
}

}  // namespace loipe::cli
