// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/error.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace loipe {

/// A regular file opened for reading at any position, from any thread. It keeps
/// reading the same content when another file takes its path. All mistakes are
/// FileError with the path.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// The path in quotes, for messages.
  const std::string& name() const { return name_; }
  std::uint64_t size() const { return size_; }
  /// Fills all of `target` with the bytes from `offset` on.
  void read(std::uint64_t offset, std::span<std::byte> target) const;

 private:
  std::string name_;
  int descriptor_;
  std::uint64_t size_ = 0;
};

/// The whole file.
std::string read_text_file(const std::filesystem::path& path);

/// Writes the pieces one after the other into a temporary file of the same
/// folder, then renames it: the path holds the old file or the whole new one,
/// never a part. What is no regular file (/dev/null, a pipe) is written to directly.
void write_file(const std::filesystem::path& path, std::span<const std::span<const std::byte>> pieces);
void write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace loipe
