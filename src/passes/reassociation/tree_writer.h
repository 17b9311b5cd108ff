// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "passes/reassociation/contraction_tree.h"
#include "passes/rebuild.h"

namespace loipe::passes {

/// Writes the term of a value of this shape as einsums of one or two factors, in the
/// order of the tree. Factors are values of the source.
Value write_tree(Rebuild& rebuild, const ProductTerm& term, const ContractionTree& tree, const Shape& shape);

}  // namespace loipe::passes
