// SPDX-License-Identifier: Apache-2.0
// pad, concatenate, gather, scatter: strided copies where positions are affine.
#include <algorithm>

#include "backends/cpu/lowering/op_lowerings.h"
#include "backends/cpu/steps/copy_step.h"
#include "backends/cpu/steps/indexed_steps.h"

namespace loipe::cpu {

namespace {

std::size_t index_of(std::int64_t axis) { return static_cast<std::size_t>(axis); }

/// Positions of a tensor as a view over labels: stride and offset of each axis'
/// coordinate times the distance of the axis. Nothing if a coordinate is an index
/// array or leaves its axis.
std::optional<StridedView> view_over_labels(const StridedView& tensor,
                                            const std::vector<Coordinate>& coordinates,
                                            const Shape& extents) {
  StridedView view{tensor.buffer, tensor.dtype, tensor.offset, extents, Integers(extents.size(), 0)};
  for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
    const Coordinate& c = coordinates[axis];
    if (!c.is_affine()) return std::nullopt;
    std::int64_t lowest = c.offset, highest = c.offset;
    for (const Stride& s : c.strides) {
      const std::int64_t reach = s.stride * (extents[s.label] - 1);
      (reach < 0 ? lowest : highest) += reach;
      view.strides[s.label] += s.stride * tensor.strides[axis];
    }
    if (lowest < 0 || highest >= tensor.shape[axis]) return std::nullopt;
    view.offset += c.offset * tensor.strides[axis];
  }
  return view;
}

IndexedPlaces indexed_places(Lowering& lowering, Value node, std::vector<Coordinate> coordinates,
                             const Shape& shape, std::vector<StridedView>& reads) {
  IndexedPlaces places{shape, std::move(coordinates), {}};
  for (Value operand : lowering.program().operands(node))
    places.index_arrays.push_back(lowering.view(operand));
  reads.insert(reads.end(), places.index_arrays.begin(), places.index_arrays.end());
  return places;
}

}  // namespace

void lower_gather(Lowering& lowering, Value node) {
  const Program& program = lowering.program();
  const Value source = program.operands(node)[0];
  const Shape& extents = program.shape(node);
  std::vector<Coordinate> from = parse_coordinates(program.attributes(node).text("from"));
  if (element_count(extents) == 0) return static_cast<void>(lowering.define_new(node));
  if (const auto view = view_over_labels(lowering.view(source), from, extents))
    return lowering.define(node, *view);
  const StridedView whole = lowering.contiguous(source);
  std::vector<StridedView> reads{whole};
  IndexedPlaces places = indexed_places(lowering, node, std::move(from), program.shape(source), reads);
  const StridedView out = lowering.define_new(node);
  lowering.emit(make_indexed_read_step(std::move(places), whole, out), reads, std::span(&out, 1));
}

namespace {

/// The value along the labels: constant along those that are not among its axes.
StridedView scattered_value(Lowering& lowering, Value node) {
  const Attributes& attributes = lowering.program().attributes(node);
  return along(lowering.view(lowering.program().operands(node)[0]), attributes.integers("extents"),
               attributes.integers("axes"));
}

/// A new buffer with the base in it, or the base's own buffer when nobody else needs it.
StridedView result_with_base(Lowering& lowering, Value node) {
  const Value base = lowering.program().operands(node)[1];
  if (lowering.may_overwrite(base) && base != lowering.program().operands(node)[0]) {
    const StridedView in_place = lowering.view(base);
    lowering.define(node, in_place);
    return in_place;
  }
  const StridedView out = lowering.define_new(node);
  lowering.emit_copy(lowering.view(base), out);
  return out;
}

}  // namespace

void lower_scatter(Lowering& lowering, Value node) {
  const Program& program = lowering.program();
  const Attributes& attributes = program.attributes(node);
  const bool has_base = attributes.has("base");
  const StridedView value = scattered_value(lowering, node);
  std::vector<Coordinate> to = parse_coordinates(attributes.text("to"));
  const StridedView out = has_base ? result_with_base(lowering, node) : lowering.define_new(node);
  const auto target = value.count() == 0 ? std::nullopt : view_over_labels(out, to, value.shape);
  const bool is_injective_target = target && is_injective(target->shape, target->strides);
  const bool covers_all = is_injective_target && value.count() == out.count();
  if (!has_base && !covers_all) lowering.emit(make_zero_step(out), {}, out);
  if (value.count() == 0) return;
  if (target) {
    if (!has_base && is_injective_target) lowering.emit_copy(value, *target);
    else lowering.emit(make_add_step(value, *target), {value}, *target);
    return;
  }
  std::vector<StridedView> reads{value};
  IndexedPlaces places = indexed_places(lowering, node, std::move(to), out.shape, reads);
  lowering.emit(make_indexed_add_step(std::move(places), value, out, !has_base), reads, std::span(&out, 1));
}

/// Fills with the padding value, then copies the window of the operand that lands inside.
void lower_pad(Lowering& lowering, Value node) {
  const Program& program = lowering.program();
  const Attributes& attributes = program.attributes(node);
  const Integers &low = attributes.integers("low"), &interior = attributes.integers("interior");
  const StridedView out = lowering.define_new(node);
  lowering.emit_copy(along(lowering.view(program.operands(node)[1]), out.shape, {}), out);
  StridedView from = lowering.view(program.operands(node)[0]), to = out;
  for (std::size_t axis = 0; axis < from.shape.size(); ++axis) {
    const std::int64_t step = interior[axis] + 1, extent = from.shape[axis];
    const std::int64_t first = low[axis] < 0 ? (-low[axis] + step - 1) / step : 0;
    const std::int64_t start = low[axis] + first * step;
    const std::int64_t room = start < out.shape[axis] ? (out.shape[axis] - 1 - start) / step + 1 : 0;
    from.shape[axis] = to.shape[axis] = std::clamp<std::int64_t>(extent - first, 0, room);
    from.offset += first * from.strides[axis];
    to.offset += start * to.strides[axis];
    to.strides[axis] *= step;
  }
  if (from.count() > 0) lowering.emit_copy(from, to);
}

void lower_concatenate(Lowering& lowering, Value node) {
  const Program& program = lowering.program();
  const std::size_t axis = index_of(program.attributes(node).integer("axis"));
  StridedView to = lowering.define_new(node);
  for (Value part : program.operands(node)) {
    const StridedView from = lowering.view(part);
    to.shape = from.shape;
    if (from.count() > 0) lowering.emit_copy(from, to);
    to.offset += from.shape[axis] * to.strides[axis];
  }
}

}  // namespace loipe::cpu
