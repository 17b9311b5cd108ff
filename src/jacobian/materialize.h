// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jacobian/local_jacobian.h"

namespace loipe {

/// The dense array of shape out_shape + in_shape, by nodes added to the builder.
Value materialize(Builder& builder, const LocalJacobian& jacobian, const Shape& out_shape,
                  const Shape& in_shape, DType dtype);

}  // namespace loipe
