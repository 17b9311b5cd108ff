// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz_target.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/printable.h"

namespace loipe::testing {

namespace {

constexpr FuzzTarget kTargets[] = {
    {"ir_text", fuzz_ir_text},
    {"safetensors", fuzz_safetensors},
    {"order_file", fuzz_order_file},
    {"laws", fuzz_laws},
};

}  // namespace

std::span<const FuzzTarget> all_fuzz_targets() { return kTargets; }

const FuzzTarget& find_fuzz_target(std::string_view name) {
  const auto* found = std::ranges::find(kTargets, name, &FuzzTarget::name);
  require(found != std::end(kTargets), "there is no fuzz target '" + std::string(name) + "'");
  return *found;
}

bool is_refused(const std::function<void()>& read) {
  try {
    read();
    return false;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) throw;
    const std::string_view message = error.what();
    constexpr std::size_t kMargin = 200;  // for what a reader puts in front
    require(!message.empty(), "an error without a message");
    require(printable(message, kLongestMessage + kMargin) == message,
            "an error message of " + std::to_string(message.size()) +
                " bytes that is long or not printable: " + printable(message));
    return true;
  }
}

MemoryFile::MemoryFile(std::span<const std::uint8_t> bytes)
    : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)),
      path_("/proc/self/fd/" + std::to_string(descriptor_)) {
  require(descriptor_ >= 0, "no file in memory");
  while (!bytes.empty()) {
    const auto written = ::write(descriptor_, bytes.data(), bytes.size());
    require(written > 0, "a file in memory cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

MemoryFile::~MemoryFile() { ::close(descriptor_); }

}  // namespace loipe::testing
