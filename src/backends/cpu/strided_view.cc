// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/strided_view.h"

#include <algorithm>
#include <cstdlib>

namespace loipe::cpu {

bool StridedView::is_contiguous() const {
  std::int64_t expected = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] != 1 && strides[axis] != expected) return count() == 0;
    expected *= shape[axis];
  }
  return true;
}

std::string to_text(const StridedView& view) {
  return to_string(TensorType{view.dtype, view.shape}) + " in b" + std::to_string(view.buffer) + " at " +
         std::to_string(view.offset) + ", strides " + to_string(view.strides);
}

Integers row_major_strides(std::span<const std::int64_t> shape) {
  Integers strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

StridedView contiguous_view(BufferId buffer, DType dtype, const Shape& shape, std::int64_t offset) {
  return {buffer, dtype, offset, shape, row_major_strides(shape)};
}

StridedView along(const StridedView& view, const Shape& extents, std::span<const std::int64_t> axis_of) {
  StridedView result{view.buffer, view.dtype, view.offset, extents, Integers(extents.size(), 0)};
  for (std::size_t axis = 0; axis < axis_of.size(); ++axis)
    if (axis_of[axis] != kNoAxis && view.shape[axis] != 1)
      result.strides[static_cast<std::size_t>(axis_of[axis])] += view.strides[axis];
  return result;
}

namespace {

/// The axes that are not of extent 1.
StridedView squeezed(const StridedView& view) {
  StridedView result{view.buffer, view.dtype, view.offset, {}, {}};
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis) {
    if (view.shape[axis] == 1) continue;
    result.shape.push_back(view.shape[axis]);
    result.strides.push_back(view.strides[axis]);
  }
  return result;
}

}  // namespace

// Walks both shapes in step: the shortest runs of old axes old_begin..old_end and
// of new axes with one number of elements correspond; old axes of a run must merge.
std::optional<StridedView> reshaped(const StridedView& view, const Shape& shape) {
  StridedView result{view.buffer, view.dtype, view.offset, shape, Integers(shape.size(), 0)};
  if (view.count() == 0) {
    result.strides = row_major_strides(shape);
    return result;
  }
  const StridedView old = squeezed(view);
  std::size_t old_begin = 0, begin = 0;
  while (old_begin < old.shape.size()) {
    std::size_t old_end = old_begin + 1, end = begin + 1;
    std::int64_t old_count = old.shape[old_begin], count = shape[begin];
    while (old_count != count) {
      if (count < old_count) count *= shape[end++];
      else old_count *= old.shape[old_end++];
    }
    for (std::size_t k = old_begin; k + 1 < old_end; ++k)
      if (old.strides[k] != old.strides[k + 1] * old.shape[k + 1]) return std::nullopt;
    std::int64_t stride = old.strides[old_end - 1];
    for (std::size_t k = end; k-- > begin;) {
      result.strides[k] = stride;
      stride *= shape[k];
    }
    old_begin = old_end;
    begin = end;
  }
  return result;
}

void collapse(Shape& extents, std::span<Integers* const> strides) {
  std::size_t kept = 0;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] == 1) continue;
    const bool merges = kept > 0 && std::ranges::all_of(strides, [&](const Integers* s) {
                          return (*s)[kept - 1] == (*s)[axis] * extents[axis];
                        });
    if (!merges) extents[kept++] = extents[axis];
    else extents[kept - 1] *= extents[axis];
    for (Integers* s : strides) (*s)[kept - 1] = (*s)[axis];
  }
  extents.resize(kept);
  for (Integers* s : strides) s->resize(kept);
}

bool is_injective(const Shape& extents, const Integers& strides) {
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // |stride|, extent
  for (std::size_t axis = 0; axis < extents.size(); ++axis)
    if (extents[axis] > 1) axes.emplace_back(std::abs(strides[axis]), extents[axis]);
  std::ranges::sort(axes);
  std::int64_t reach = 0;  // the farthest position of the axes before
  for (auto [stride, extent] : axes) {
    if (stride <= reach) return false;
    reach += stride * (extent - 1);
  }
  return true;
}

}  // namespace loipe::cpu
