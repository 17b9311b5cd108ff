// SPDX-License-Identifier: Apache-2.0
// Values in memory with their axes in another order.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "backends/cpu/lowering/lowering.h"

namespace loipe::cpu {

namespace {

/// For each axis of the view the axis of `whole` that it is; axes that only repeat elements are none. Nothing
/// where the view is not all of `whole`.
std::optional<Integers> axes_in(const StridedView& whole, const StridedView& view) {
  if (view.offset != whole.offset) return std::nullopt;
  std::vector<bool> is_missing;
  for (std::int64_t extent : whole.shape) is_missing.push_back(extent > 1);
  Integers axes;
  for (std::size_t k = 0; k < view.shape.size(); ++k) {
    axes.push_back(kNoAxis);
    if (view.shape[k] == 1 || view.strides[k] == 0) continue;
    for (std::size_t axis = 0; axis < whole.shape.size() && axes[k] == kNoAxis; ++axis)
      if (is_missing[axis] && whole.shape[axis] == view.shape[k] && whole.strides[axis] == view.strides[k])
        axes[k] = static_cast<std::int64_t>(axis);
    if (axes[k] == kNoAxis) return std::nullopt;
    is_missing[static_cast<std::size_t>(axes[k])] = false;
  }
  return std::ranges::count(is_missing, true) == 0 ? std::optional(axes) : std::nullopt;
}

}  // namespace

std::optional<StridedView> Lowering::laid_out_around(const StridedView& view, const Integers& order) {
  const Buffer& buffer = plan_.buffers[view.buffer];
  const std::size_t argument = buffer.position;
  if (around_ == nullptr || buffer.kind != BufferKind::argument || argument >= border_.arguments.size())
    return std::nullopt;
  const StridedView& whole = border_.arguments[argument];
  const std::optional<Integers> axes = axes_in(whole, view);
  if (!axes) return std::nullopt;
  // An axis of one element here may be longer around the tiles: it is the outermost there.
  Integers whole_order;
  for (std::size_t axis = 0; axis < whole.shape.size(); ++axis)
    if (std::ranges::count(*axes, static_cast<std::int64_t>(axis)) == 0)
      whole_order.push_back(static_cast<std::int64_t>(axis));
  for (std::int64_t axis : order)
    if (const std::int64_t in_whole = (*axes)[static_cast<std::size_t>(axis)]; in_whole != kNoAxis)
      whole_order.push_back(in_whole);
  if (whole_order.size() != whole.shape.size()) return std::nullopt;
  auto place = laid_out_.find({argument, whole_order});
  if (place == laid_out_.end()) {
    auto [laid_out, position] = around_->laid_out(argument, whole_order);
    laid_out.buffer = new_buffer(BufferKind::argument, buffer.bytes, position);
    place = laid_out_.emplace(std::pair(argument, whole_order), laid_out).first;
  }
  StridedView result = view;
  result.buffer = place->second.buffer;
  result.offset = place->second.offset;
  for (std::size_t k = 0; k < result.strides.size(); ++k)
    result.strides[k] =
        (*axes)[k] == kNoAxis ? 0 : place->second.strides[static_cast<std::size_t>((*axes)[k])];
  return result;
}

StridedView Lowering::with_near_neighbours(const StridedView& view) {
  constexpr std::int64_t kFewestUses = 8;
  if (!does(BackendPass::layout)) return view;
  StridedView compact{view.buffer, view.dtype, view.offset, {}, {}};
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis) {
    if (view.shape[axis] == 1) continue;
    last = view.strides[axis];
    if (last == 0) continue;
    compact.shape.push_back(view.shape[axis]);
    compact.strides.push_back(last);
  }
  if (std::abs(last) <= 1 || compact.count() * kFewestUses > view.count()) return view;
  Integers order(compact.shape.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const StridedView near = copy_in_order(compact, order);
  StridedView result = view;
  result.buffer = near.buffer;
  result.offset = near.offset;
  std::size_t axis = 0;
  for (std::size_t k = 0; k < view.shape.size(); ++k)
    if (view.shape[k] != 1 && view.strides[k] != 0) result.strides[k] = near.strides[axis++];
  return result;
}

StridedView Lowering::copy_in_order(const StridedView& from, const Integers& order) {
  const PassLog::Scope scope(log(), BackendPass::layout);
  if (const std::optional<StridedView> around = laid_out_around(from, order)) return *around;
  Shape shape;
  for (std::int64_t axis : order) shape.push_back(from.shape[static_cast<std::size_t>(axis)]);
  StridedView copy = temporary(from.dtype, shape);
  const Integers strides = copy.strides;
  copy.shape = from.shape;
  for (std::size_t k = 0; k < order.size(); ++k)
    copy.strides[static_cast<std::size_t>(order[k])] = strides[k];
  if (copy.strides == from.strides) return from;
  emit_copy(from, copy);
  note_layout(from, copy);
  return copy;
}

}  // namespace loipe::cpu
