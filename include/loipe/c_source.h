// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace loipe {

/// A compiled derivative as self-contained C11, for programs without Loipe: one function
///
///   void FUNCTION(const double* restrict in_x, ..., double* restrict out_0, ..., jac_0_x, ..., void* work)
///
/// of all arguments and seeds, outputs and blocks of one example (of all examples where the function
/// itself has their axis), row-major, with names as in files: "jac.0.x" is jac_0_x. The header tells types,
/// the bytes of scratch memory that `work` must have, and where blocks can differ from zero. It needs
/// libm alone, and has no state: any number of threads may call it.
///
/// Results are those of the back end "reference" up to the rounding of the platform's libm and of what the C
/// compiler contracts; bitwise, but for the signs of zeros, with glibc and -std=c11 or -ffp-contract=off.
/// -ffast-math gives up NaN and infinities. Loops are for the C compiler to make vectors of: -O3
/// -march=native.
struct CSource {
  std::string header;  ///< FUNCTION.h
  std::string source;  ///< FUNCTION.c, which includes it
};

}  // namespace loipe
