// SPDX-License-Identifier: Apache-2.0
#include "ops/shape/moved.h"

#include "tensor/visit.h"

namespace loipe::ops {

void move_elements(const Shape& extents, const Tensor& source, const View& source_view, Tensor& target,
                   const View& target_view) {
  visit_dtype(source.dtype(), [&]<class T>(T) {
    const std::span<const T> from = source.elements<T>();
    const std::span<T> to = target.elements<T>();
    for_each_index(extents, std::array{source_view, target_view},
                   [&](const std::array<std::size_t, 2>& at) { to[at[1]] = from[at[0]]; });
  });
}

Tensor read_along(const Tensor& source, const View& view, const TensorType& type) {
  Tensor result(type);
  move_elements(type.shape, source, view, result, {row_major_strides(type.shape)});
  return result;
}

}  // namespace loipe::ops
