// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/scalar/scalar_program.h"

namespace loipe::c {

/// The structural non-zeros of one output, row-major flattened.
struct Pattern {
  std::string name;  ///< of the output that it belongs to
  std::vector<std::int64_t> rows, columns;
};

struct SourceNames {
  std::string function;                ///< a C identifier
  std::vector<std::string> arguments;  ///< any text; made identifiers
  std::vector<std::string> outputs;
};

struct Source {
  std::string header;  ///< FUNCTION.h
  std::string source;  ///< FUNCTION.c
};

/// Self-contained C11 that computes the program: no dependency but libm, whose
/// functions round as the platform's do (glibc: below 1 ulp for most); arithmetic is
/// that of the program in the same order, so results equal the interpreter's up to
/// contraction by the C compiler. Functions have at most about 1,000 statements,
/// because C compilers are not linear in the size of a function.
Source emit_c(const scalar::Program& program, const SourceNames& names, const std::vector<Pattern>& patterns);

}  // namespace loipe::c
