// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/attributes.h"

namespace loipe::cpu {

/// Number of a buffer of the plan.
using BufferId = std::uint32_t;

/// A value inside a buffer: the element at index i lies `offset + sum strides[k]*i[k]`
/// elements after the start. Strides may be 0 (broadcast) and rank is any.
struct StridedView {
  BufferId buffer = 0;
  DType dtype = DType::f32;
  std::int64_t offset = 0;
  Shape shape;
  Integers strides;

  std::int64_t count() const { return element_count(shape); }
  /// Row-major without gaps.
  bool is_contiguous() const;
};

/// "f32[4,8] in b3 at 16, strides 8,1".
std::string to_text(const StridedView& view);

Integers row_major_strides(std::span<const std::int64_t> shape);
StridedView contiguous_view(BufferId buffer, DType dtype, const Shape& shape, std::int64_t offset = 0);

/// The view along the axes `extents`: axis k of the view runs with axis axis_of[k]
/// of the result, or is left out (kNoAxis; its extent is 1). Axes of the result that no
/// axis names are broadcast, those named twice read a diagonal.
inline constexpr std::int64_t kNoAxis = -1;
StridedView along(const StridedView& view, const Shape& extents, std::span<const std::int64_t> axis_of);

/// The same elements, row-major, in another shape; nothing when only a copy can do that.
std::optional<StridedView> reshaped(const StridedView& view, const Shape& shape);

/// Drops axes of extent 1 and merges neighbours that are one axis in every list of
/// strides. Afterwards the nest visits the same positions in the same order.
void collapse(Shape& extents, std::span<Integers* const> strides);

/// True if no two indices of a nest with these strides meet (sufficient, not necessary).
bool is_injective(const Shape& extents, const Integers& strides);

}  // namespace loipe::cpu
