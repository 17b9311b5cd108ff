// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/elementwise/family.h"

// What reductions share: the attribute `axes` names the axes that the result drops.

namespace loipe::ops {

/// A number type without these axes.
TensorType infer_reduction(const InferContext& context);
/// The same for floating point alone.
TensorType infer_floating_reduction(const InferContext& context);

std::vector<bool> is_reduced(const Attributes& attributes, std::size_t rank);
/// The axes that the result keeps, ascending.
Integers kept_axes(const Integers& axes, std::size_t rank);

/// Reads the result along the axes of the operand: constant along the reduced ones.
View result_view(const Attributes& attributes, const Shape& operand, const Shape& result);

/// The entries of the operand that each entry of the result is made of, in row-major order.
std::vector<std::vector<double>> reduced_groups(const EvaluateContext& context);

/// A reduced value repeated along the reduced axes.
Value spread(Builder& b, Value reduced, const Shape& shape, const Integers& axes);

/// Labels of the operand's axes, and those of them that the result keeps.
struct ReductionLabels {
  TermDraft term;
  std::vector<Label> all, kept;
  explicit ReductionLabels(JacobianContext& c);
};

/// Operands of several ranks, extents 1 and 0; floating point, and integers where asked for.
std::vector<Sample> reduction_samples(Rng& rng, Draw draw, bool with_integers);

}  // namespace loipe::ops
