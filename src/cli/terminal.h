// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace loipe::cli {

/// What a command tells while it works, on standard error; data go to standard output.
class Terminal {
 public:
  Terminal();

  void set_quiet(bool quiet) { quiet_ = quiet; }

  /// One line, unless --quiet.
  void note(std::string_view text) const;
  /// A bar that overwrites itself, drawn again for each per cent; nothing unless
  /// standard error is a terminal.
  void progress(std::string_view what, std::int64_t done, std::int64_t all) const;
  /// "loipe: ..." whether quiet or not.
  void error(std::string_view text) const;

 private:
  bool quiet_ = false;
  bool is_terminal_;
  bool has_color_;
  mutable std::int64_t drawn_percent_ = -1;
};

/// Writes data to standard output; FileError if that fails.
void print(std::string_view text);

}  // namespace loipe::cli
