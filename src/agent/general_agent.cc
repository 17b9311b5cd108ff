// SPDX-License-Identifier: Apache-2.0
#include "agent/general_agent.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

// The file as it is, between two symbols.
asm(".section .rodata\n"
    ".balign 16\n"
    ".global loipe_general_agent_begin\n"
    ".global loipe_general_agent_end\n"
    "loipe_general_agent_begin:\n"
    ".incbin \"" LOIPE_GENERAL_AGENT
    "\"\n"
    "loipe_general_agent_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" const std::byte loipe_general_agent_begin, loipe_general_agent_end;

namespace loipe::agent {

namespace {

/// A file in memory, which the reader of files can read.
class MemoryFile {
 public:
  MemoryFile(const std::byte* begin, std::size_t size)
      : descriptor_(memfd_create("loipe-agent", MFD_CLOEXEC)) {
    for (std::size_t done = 0; descriptor_ >= 0 && done < size;) {
      const ssize_t written = ::write(descriptor_, begin + done, size - done);
      if (written < 0 && errno != EINTR) break;
      if (written > 0) done += static_cast<std::size_t>(written);
      is_whole_ = done == size;
    }
  }
  ~MemoryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const {
    if (!is_whole_)
      throw ResourceError(std::string("the general agent cannot be unpacked into memory: ") +
                          std::strerror(errno) + "; give --agent FILE");
    return "/proc/self/fd/" + std::to_string(descriptor_);
  }

 private:
  int descriptor_;
  bool is_whole_ = false;
};

}  // namespace

Agent general_agent() {
  const auto size = static_cast<std::size_t>(&loipe_general_agent_end - &loipe_general_agent_begin);
  const MemoryFile file(&loipe_general_agent_begin, size);
  return read_agent(file.path());
}

}  // namespace loipe::agent
