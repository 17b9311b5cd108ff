// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <loipe/structured_block.h>

#include <vector>

#include "jacobian/recorder.h"

namespace loipe {

/// A block in its public form, and the values of its tensors. Masks are applied to values.
struct StructuredValues {
  StructuredBlock block;
  std::vector<Value> tensors;
};
StructuredValues structured(Recorder& recorder, const LocalJacobian& jacobian, const Shape& out,
                            const Shape& in, DType dtype);

}  // namespace loipe
