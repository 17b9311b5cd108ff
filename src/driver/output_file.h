// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace loipe {

/// FileError unless a file could be written there now. Asked before a long computation,
/// so that it is not lost; leaves nothing behind.
void check_writable(const std::filesystem::path& path);

}  // namespace loipe
