// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/emit.h"

// Tools for implicit Jacobians (jacobian/local_jacobian.h): directions have a leading
// axis [K], over which the primal values are constant.

namespace loipe::ops {

/// The value with a leading axis of extent 1, which goes with any K.
Value beside_directions(Builder& b, Value primal);

/// Directions of a broadcast result [K, out...] as those of an operand [K, operand...],
/// whose rank is the same: sums over the axes along which it was repeated.
Value summed_to(Builder& b, Value directions, const Shape& operand);

/// How many leading axes of two shapes have one extent, `core` last axes of both left out.
std::size_t common_leading_axes(const Shape& a, const Shape& b, std::size_t core);

/// The entries of the last axis one place later, or earlier; what leaves is dropped, and
/// the number `fill` comes in.
Value shifted(Builder& b, Value x, bool to_earlier, double fill);

}  // namespace loipe::ops
