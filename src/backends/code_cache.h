// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace loipe {

/// Compiled code on disk, for the next process. One file for each key, in LOIPE_CACHE_DIR,
/// else XDG_CACHE_HOME/loipe, else HOME/.cache/loipe. All files together keep to
/// LOIPE_CACHE_BYTES (default 256 MiB, 0: no cache); those not used for the longest time
/// go first. It is only ever an aid: whatever is wrong with a file or with the folder,
/// nothing throws, and the code is compiled again. A folder that everybody may write to is
/// not used, because what lies in it is run.
class CodeCache {
 public:
  /// As the environment says now; UserError for a LOIPE_CACHE_BYTES that is no number.
  CodeCache();
  CodeCache(std::filesystem::path folder, std::uint64_t limit);

  bool is_enabled() const { return limit_ > 0 && !folder_.empty(); }
  const std::filesystem::path& folder() const { return folder_; }
  std::uint64_t limit() const { return limit_; }
  /// Bytes of all files now.
  std::uint64_t size() const;

  /// What was stored under the key, bit by bit, or nothing. The key is a file name.
  std::optional<std::string> load(const std::string& key) const;
  /// Readers in other processes see the whole entry or none.
  void store(const std::string& key, std::string_view code) const;

 private:
  std::filesystem::path file_of(const std::string& key) const;
  bool prepare_folder() const;
  void shrink() const;

  std::filesystem::path folder_;
  std::uint64_t limit_;
};

}  // namespace loipe
