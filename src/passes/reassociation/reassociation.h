// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program.h"

namespace loipe::passes {

/// Products of several factors are computed in the order that needs the fewest
/// multiplications:
///
///   einsum(A, einsum(B, c))      instead of  einsum(einsum(A, B), c)
///   einsum(v, einsum(P, q))      instead of  einsum(P, einsum(v, q)), an outer product
///   mul(s * v, A)                instead of  mul(s, mul(v, A))
///   einsum(reduce_sum(A), B)     where only A has a summed label
///
/// A product is an einsum, a mul with broadcasting, a reduce_sum, or any of them behind
/// transpose, broadcast_in_dim, or a reshape that only moves axes of extent 1. A product
/// is opened inside another when nothing else needs it, or when computing its part anew
/// is cheaper than multiplying by the whole.
///
/// Exactness: sums and products of real numbers are the same in any order; in floating
/// point they differ by roundings (of a sum of n terms by n u times the sum of the
/// absolute values), and where an intermediate product overflows or is subnormal in
/// one order only. Integers below 2^53 stay exact.
///
/// Masks: an einsum with a mask is never opened and never changed, so no term that a mask
/// hides is formed.
///
/// Before: a program that verifies.
/// After:  neither multiplications nor all operations of the nodes that outputs need are
///         more than before; where anything changed, also `algebraic`, `common_subexpressions`
///         and `dead_code` have been applied. No term of up to six factors can be improved
///         by opening one product, or all products, in it.
/// Here:   after `reciprocals`: equal values are one value, so that it is known what
///         else needs a product.
Program reassociation(const Program& program);

}  // namespace loipe::passes
