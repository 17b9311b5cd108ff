// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/indexing.h"

namespace loipe::ops {

/// For every index of the extents: target[target_view] = source[source_view]. One
/// dtype for both.
void move_elements(const Shape& extents, const Tensor& source, const View& source_view, Tensor& target,
                   const View& target_view);

/// The tensor of that type whose entries, in row-major order, are read along the view.
Tensor read_along(const Tensor& source, const View& view, const TensorType& type);

}  // namespace loipe::ops
