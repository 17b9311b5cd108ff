// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "ir/program.h"

namespace loipe {

/// The inverse of program_to_text; docs/ir_text.md describes the form. Values may
/// have any names, types may be left out. Every mistake is a UserError (or
/// Unsupported, ResourceError) "line 3, column 12: expected ..., got ...".
/// Takes linear time and memory, whatever the text.
Program program_from_text(std::string_view text);

/// The program of a file; a mistake in its text is a FileError that names the
/// file, line and column. Unsupported and ResourceError stay what they are.
Program read_program(const std::filesystem::path& path);

}  // namespace loipe
