// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace loipe {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const std::string& name, const std::string& what, int error) {
  throw FileError("file " + name + " " + what + ": " + std::generic_category().message(error));
}

/// The temporary file beside the final one; removed unless it took its place.
class TemporaryFile {
 public:
  explicit TemporaryFile(fs::path final_path) : final_path_(std::move(final_path)) {
    static std::atomic<unsigned> counter = 0;
    do {
      const std::string suffix = "." + std::to_string(::getpid()) + "." + std::to_string(counter++) + ".tmp";
      path_ = final_path_;
      path_ += suffix;
      descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (descriptor_ < 0 && errno == EEXIST);
    if (descriptor_ < 0) fail(quote(final_path_.string()), "cannot be written", errno);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  int descriptor() const { return descriptor_; }

  void commit() {
    const int closed = ::close(std::exchange(descriptor_, -1));  // the disk may be full only now
    if (closed != 0 || ::rename(path_.c_str(), final_path_.c_str()) != 0)
      fail(quote(final_path_.string()), "cannot be written", errno);
    path_.clear();
  }

 private:
  fs::path final_path_;
  fs::path path_;
  int descriptor_ = -1;
};

void write_all(int descriptor, std::span<const std::byte> bytes, const std::string& name) {
  while (!bytes.empty()) {
    const auto written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(name, "cannot be written", written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

/// Renaming over a device would replace it, and a pipe would never see the data.
void write_in_place(const fs::path& path, std::span<const std::span<const std::byte>> pieces) {
  const std::string name = quote(path.string());
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) fail(name, "cannot be written", errno);
  struct Closer {
    int descriptor;
    ~Closer() { ::close(descriptor); }
  } closer{descriptor};
  for (std::span<const std::byte> piece : pieces) write_all(descriptor, piece, name);
}

}  // namespace

InputFile::InputFile(const fs::path& path) : name_(quote(path.string())) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail(name_, "cannot be read", errno);
  struct stat status{};
  if (::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  ::close(descriptor_);
  throw FileError("file " + name_ + " cannot be read: it is not a regular file");
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(std::uint64_t offset, std::span<std::byte> target) const {
  while (!target.empty()) {
    const auto count = ::pread(descriptor_, target.data(), target.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(name_, "cannot be read", errno);
    if (count == 0) throw FileError("file " + name_ + " ends too early: it was cut while being read");
    target = target.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

std::string read_text_file(const fs::path& path) {
  const InputFile file(path);
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void write_file(const fs::path& path, std::span<const std::span<const std::byte>> pieces) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_in_place(path, pieces);
  // A link stays one: the file that it points to is replaced.
  const fs::path target = fs::exists(status) ? fs::canonical(path) : path;
  TemporaryFile temporary(target);
  for (std::span<const std::byte> piece : pieces)
    write_all(temporary.descriptor(), piece, quote(path.string()));
  temporary.commit();
}

void write_file(const fs::path& path, std::string_view text) {
  const std::span<const std::byte> piece = std::as_bytes(std::span(text));
  write_file(path, std::span(&piece, 1));
}

}  // namespace loipe
