// SPDX-License-Identifier: Apache-2.0
#include "ops/indexing.h"

namespace loipe::ops {

Integers row_major_strides(std::span<const std::int64_t> shape) {
  Integers strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

}  // namespace loipe::ops
