// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"

namespace loipe::passes {

/// Values are computed with their axes in the order in which they are read:
///
///   transpose(einsum(A, B))      the einsum with the axes of its result in that order,
///   transpose(scatter(v, base))  the same, with the base transposed,
///   transpose(x + y), -, *       of the transposed operands, if those of the same shape can be
///                                computed so; smaller ones, which are repeated, are transposed;
///   einsum(A, X), where X is     with that axis of X last which is the last one of the result, for X
///   an einsum or a scatter       that only such einsums, and sums over one axis, read.
///
/// An outer product in the order of the loop that reads it joins that loop instead of being stored, and
/// a base in the order of the result is added to where it lies instead of being copied.
///
/// Exactness: every element is computed by the same operations in the same order.
///
/// Before: a program that verifies.
/// After:  none of these is left. The cost of no node changes.
/// Here:   after `reassociation`, which looks through transposes, so that no others come after.
Program transposes(const Program& program);

}  // namespace loipe::passes
