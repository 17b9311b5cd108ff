// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/program.h"

namespace loipe {

/// The textual form, described in docs/ir_text.md: one line for each node, which
/// program_from_text reads back to the same program and so to the same text.
std::string program_to_text(const Program& program);

/// What the values of a program are called in its text: arguments by their name,
/// constants %c1, %c2, ..., all others by their vertex number %1, %2, ... .
class ValueNames {
 public:
  explicit ValueNames(const Program& program);

  /// "%x"; "%<invalid 7>" for a value that is not in the program.
  std::string of(Value value) const;
  /// Appends the name, without a temporary.
  void append(std::string& text, Value value) const;

 private:
  const Program& program_;
  std::vector<std::uint32_t> numbers_;  // of the vertex, the constant or the argument
};

/// "%2 = mul(%1, %c1) : f32[4]", without indentation or newline. Also prints a
/// node that does not verify.
std::string node_to_text(const Program& program, const ValueNames& names, Value node);

}  // namespace loipe
