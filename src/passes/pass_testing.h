// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "passes/dead_code/dead_code.h"

// What the tests of passes share.

namespace loipe {

/// A program f from its arguments and its body, in the textual form.
inline std::string program_text(const std::string& arguments, const std::string& body) {
  return "program f(" + arguments + ") {\n" + body + "}\n";
}

/// The program after the pass, printed as the parser prints it.
inline std::string after(Program (*pass)(const Program&), const std::string& text) {
  const Program result = pass(program_from_text(text));
  verify(result);
  EXPECT_EQ(program_to_text(pass(result)), program_to_text(result)) << "the pass is not idempotent";
  return program_to_text(result);
}

/// The pass turns one body into the other; nodes that became dead are not compared.
inline void expect_rewrite(Program (*pass)(const Program&), const std::string& arguments,
                           const std::string& before, const std::string& expected) {
  const std::string text = after(pass, program_text(arguments, before));
  EXPECT_EQ(program_to_text(passes::dead_code(program_from_text(text))),
            program_to_text(program_from_text(program_text(arguments, expected))))
      << "from\n"
      << before;
}

inline void expect_unchanged(Program (*pass)(const Program&), const std::string& arguments,
                             const std::string& body) {
  expect_rewrite(pass, arguments, body, body);
}

}  // namespace loipe
