// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"

namespace loipe::passes {

/// Divisions by the same floating value become one reciprocal and products,
///
///   x1/y, x2/y, ...  ->  r = 1/y;  x1*r, x2*r, ...
///
/// when they divide at least twice for each element of y: by one division of a
/// matrix by a column as well as by two of scalars. A y that is broadcast before it
/// divides is inverted before. Constant y are inverted here and now.
///
/// A division by constants that are powers of two, 1/y also normal, becomes a product
/// in any case: x/2^k and x*2^-k are the same number, rounded once.
///
/// Exactness: for all others, r = (1/y)(1 + d) with |d| <= u (half of the epsilon), so
/// x*r before rounding is x/y within u relatively, less than 1 ulp; both results are
/// rounded by at most 1/2 ulp, so they differ by less than 2 ulp, which is at most 1 ulp. This
/// holds where 1/y is a normal number. Where it is not (|y| above 2^1022, of f32
/// 2^126, or subnormal), digits are lost or the result overflows. 0, infinities and
/// NaN in the place of y give what the division gives.
///
/// Before: a program that verifies; equal divisors are one value (`common_subexpressions`).
/// After:  among the nodes that outputs need, no value divides twice per element. A
///         product with a reciprocal that was there already (derivatives of quotients
///         have them) is not computed twice.
///         Divisions never get more; the total cost rises by at most that of the
///         reciprocals, one division for each element of y.
/// Here:   after `common_subexpressions`, before `dead_code`.
Program reciprocals(const Program& program);

}  // namespace loipe::passes
