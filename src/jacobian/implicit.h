// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jacobian/arithmetic.h"

namespace loipe {

/// The product of two local Jacobians of which at least one is implicit: it is
/// applied to the other factor's directions.
///
/// A factor meets the implicit one along the axes of the middle. Each of its terms
/// becomes a block of directions [K, middle...], where K runs over the labels that
/// the far side of the factor needs. Along a tied axis of the implicit Jacobian
/// nothing mixes, so a label that alone determines a position there costs no
/// direction: it is carried along that axis and read off behind. For a batch this
/// is one direction per element of an example, not of all examples.
LocalJacobian multiply_implicit(Recorder& recorder, const LocalJacobian& post, const LocalJacobian& pre,
                                const ProductShapes& shapes);

/// The sum of two implicit Jacobians as an implicit one, which multiplies by both; null where they have no
/// direction in common or take different dtypes. An operand that stands twice in a node has two.
std::shared_ptr<const ImplicitJacobian> implicit_sum(std::shared_ptr<const ImplicitJacobian> a,
                                                     std::shared_ptr<const ImplicitJacobian> b);

}  // namespace loipe
