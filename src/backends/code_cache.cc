// SPDX-License-Identifier: Apache-2.0
#include "backends/code_cache.h"

#include <loipe/error.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace loipe {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kExtension = ".code";
constexpr std::uint64_t kDefaultLimit = std::uint64_t{256} << 20;

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

fs::path folder_of_environment() {
  if (const std::string folder = environment("LOIPE_CACHE_DIR"); !folder.empty()) return folder;
  // The standard has relative paths ignored.
  if (const fs::path base = environment("XDG_CACHE_HOME"); base.is_absolute()) return base / "loipe";
  if (const fs::path home = environment("HOME"); home.is_absolute()) return home / ".cache" / "loipe";
  return {};
}

std::uint64_t limit_of_environment() {
  const std::string text = environment("LOIPE_CACHE_BYTES");
  if (text.empty()) return kDefaultLimit;
  std::uint64_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error != std::errc() || end != text.data() + text.size())
    throw UserError("LOIPE_CACHE_BYTES in the environment is '" + shortened(text) +
                    "', expected a whole number of bytes, such as 268435456, or 0 for no cache");
  return limit;
}

std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u ^ bytes.size();
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t count = std::min(bytes.size(), sizeof(word));
    std::memcpy(&word, bytes.data(), count);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
    bytes.remove_prefix(count);
  }
  return hash;
}

/// What a file begins with; the rest is the code.
struct Header {
  char magic[8] = {'l', 'o', 'i', 'p', 'e', ' ', '0', '1'};
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;

  bool operator==(const Header&) const = default;
};

Header header_of(std::string_view code) { return {.bytes = code.size(), .checksum = checksum(code)}; }

struct Entry {
  fs::path path;
  std::uint64_t bytes;
  fs::file_time_type used;
};

/// Also what a writer that was killed has left: its name goes on behind the extension.
std::vector<Entry> entries_of(const fs::path& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end; file.increment(error)) {
    std::error_code gone;  // by another process
    if (file->path().filename().string().find(kExtension) == std::string::npos) continue;
    const std::uint64_t bytes = file->file_size(gone);
    const fs::file_time_type used = file->last_write_time(gone);
    if (!gone) entries.push_back({file->path(), bytes, used});
  }
  return entries;
}

}  // namespace

CodeCache::CodeCache() : CodeCache(folder_of_environment(), limit_of_environment()) {}

CodeCache::CodeCache(fs::path folder, std::uint64_t limit) : folder_(std::move(folder)), limit_(limit) {}

std::uint64_t CodeCache::size() const {
  std::uint64_t total = 0;
  for (const Entry& entry : entries_of(folder_)) total += entry.bytes;
  return total;
}

fs::path CodeCache::file_of(const std::string& key) const {
  return folder_ / (key + std::string(kExtension));
}

bool CodeCache::prepare_folder() const {
  std::error_code error;
  if (!is_enabled()) return false;
  if (fs::create_directories(folder_, error)) fs::permissions(folder_, fs::perms::owner_all, error);
  const fs::file_status status = fs::status(folder_, error);
  return !error && fs::is_directory(status) &&
         (status.permissions() & fs::perms::others_write) == fs::perms::none;
}

std::optional<std::string> CodeCache::load(const std::string& key) const try {
  if (!prepare_folder()) return std::nullopt;
  const fs::path path = file_of(key);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  std::string text = read_text_file(path);
  Header header;
  if (text.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, text.data(), sizeof(header));
  text.erase(0, sizeof(header));
  if (header != header_of(text)) return std::nullopt;
  fs::last_write_time(path, fs::file_time_type::clock::now(), error);
  return text;
} catch (const std::exception&) {
  return std::nullopt;
}

void CodeCache::store(const std::string& key, std::string_view code) const try {
  if (sizeof(Header) + code.size() > limit_ || !prepare_folder()) return;
  const Header header = header_of(code);
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(&header, 1)),
                                               std::as_bytes(std::span(code))};
  write_file(file_of(key), pieces);
  shrink();
} catch (const std::exception&) {
  // No cache then.
}

void CodeCache::shrink() const {
  std::vector<Entry> entries = entries_of(folder_);
  std::uint64_t total = 0;
  for (const Entry& entry : entries) total += entry.bytes;
  if (total <= limit_) return;
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& entry : entries) {
    if (total <= limit_) return;
    std::error_code gone;
    fs::remove(entry.path, gone);
    total -= entry.bytes;
  }
}

}  // namespace loipe
