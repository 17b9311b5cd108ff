// SPDX-License-Identifier: Apache-2.0
#include "driver/output_file.h"

#include <loipe/error.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/text.h"

namespace loipe {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const fs::path& path, const std::string& reason) {
  throw FileError("file " + quote(path.string()) + " cannot be written: " + reason);
}

}  // namespace

void check_writable(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (path.empty()) fail(path, "the name is empty");
  if (fs::is_directory(status)) fail(path, "it is a directory");
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    if (::access(path.c_str(), W_OK) != 0) fail(path, std::strerror(errno));
    return;
  }
  // A new file beside it, as the writer makes: permissions alone do not tell (root,
  // read-only file systems).
  const fs::path target = fs::exists(status) ? fs::canonical(path) : path;
  std::string probe = (target.parent_path() / ".loipe-XXXXXX").string();
  const int descriptor = ::mkstemp(probe.data());
  if (descriptor < 0) fail(path, std::strerror(errno));
  ::close(descriptor);
  ::unlink(probe.c_str());
}

}  // namespace loipe
