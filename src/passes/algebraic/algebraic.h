// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"

namespace loipe::passes {

/// Exact identities: x*1, x/1, x*(-1), -(-x), x+(-y), x-(-y), reshape of reshape,
/// transpose of transpose, moves that do nothing, select whose outcome is known,
/// gather, scatter and einsum that only move, add or multiply. Each is stated and
/// proved where it is coded, in *_rules.cc.
///
/// Exact means for all inputs, infinities included: NaN stays NaN (its sign and
/// payload are not kept), every other value keeps its bits. One thing differs: the
/// sums of einsum, reduce_sum and scatter start at +0, which turns a lone -0 into
/// +0, and an identity that removes such a sum lets the -0 through. So x*0, x-x and
/// x+0 of floating x stay (the last one is +0 for x = -0), while x+(-0), x-0 and the
/// same of integers go. The order of the additions of a sum is never changed.
///
/// Derivatives are kept as well, hence stop_gradient stays.
///
/// Before: a program that verifies.
/// After:  no identity applies to any node. The cost of no node rises.
/// Here:   after `constant_folding`, which makes the constants that the identities
///         look for, and before `common_subexpressions`, since equal values in one
///         normal form are found to be equal.
Program algebraic(const Program& program);

}  // namespace loipe::passes
