// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "backends/c/source.h"

namespace loipe::c {

/// Statements of one function, about: C compilers are not linear in the size of a function.
inline constexpr std::size_t kStatementsPerFunction = 1000;

/// Programs of at most so many elements and operations become straight-line code, if they have a
/// scalar form; all others become loops.
inline constexpr std::int64_t kLargestStraightLine = 50'000;

/// Why the program cannot be written as C, one reason a line; empty if it can. The only ops that are not
/// written are those defined in C++ (loipe/custom_op.h).
std::vector<std::string> reasons_against(const Program& program);

/// Self-contained C11 that computes the program: no dependency but libm, whose functions round as
/// the platform's do (glibc: below 1 ulp for most). Arithmetic is that of the reference interpreter in the
/// same dtype and order, so results equal its up to what the C compiler contracts (-ffp-contract=off:
/// nothing). Straight-line code folds constants and moves signs, which changes signs of zeros alone.
/// Attention sums in float64 whatever its dtype, as the interpreter does. NaN, infinities and ties are as
/// there, unless the compiler is told that there are none (-ffast-math). Arguments that are bool hold 0 or 1.
///
/// Unsupported, with the reasons, where there are some.
Source emit_c(const Program& program, const SourceNames& names, const std::vector<Pattern>& patterns);

}  // namespace loipe::c
