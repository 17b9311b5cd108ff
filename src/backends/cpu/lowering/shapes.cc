// SPDX-License-Identifier: Apache-2.0
// Nodes that only rename positions become views of their operands.
#include "backends/cpu/lowering/op_lowerings.h"

namespace loipe::cpu {

namespace {

const StridedView& operand_view(Lowering& lowering, Value node) {
  return lowering.view(lowering.program().operands(node)[0]);
}

std::size_t index_of(std::int64_t axis) { return static_cast<std::size_t>(axis); }

}  // namespace

void lower_transpose(Lowering& lowering, Value node) {
  const Integers& permutation = lowering.program().attributes(node).integers("permutation");
  StridedView view = operand_view(lowering, node);
  const StridedView from = view;
  for (std::size_t axis = 0; axis < permutation.size(); ++axis) {
    view.shape[axis] = from.shape[index_of(permutation[axis])];
    view.strides[axis] = from.strides[index_of(permutation[axis])];
  }
  lowering.define(node, view);
}

void lower_reshape(Lowering& lowering, Value node) {
  const StridedView& from = operand_view(lowering, node);
  const Shape& shape = lowering.program().shape(node);
  if (const std::optional<StridedView> view = reshaped(from, shape)) return lowering.define(node, *view);
  const StridedView out = lowering.define_new(node);
  lowering.emit_copy(operand_view(lowering, node),
                     contiguous_view(out.buffer, out.dtype, operand_view(lowering, node).shape));
}

/// The view of the first operand; that the second one is computed is done by now.
void lower_after(Lowering& lowering, Value node) { lowering.define(node, operand_view(lowering, node)); }

void lower_broadcast(Lowering& lowering, Value node) {
  lowering.define(node, along(operand_view(lowering, node), lowering.program().shape(node),
                              lowering.program().attributes(node).integers("dimensions")));
}

void lower_slice(Lowering& lowering, Value node) {
  const Attributes& attributes = lowering.program().attributes(node);
  const Integers& start = attributes.integers("start");
  StridedView view = operand_view(lowering, node);
  view.shape = lowering.program().shape(node);
  for (std::size_t axis = 0; axis < start.size(); ++axis) {
    if (view.count() > 0) view.offset += start[axis] * view.strides[axis];
    if (attributes.has("stride")) view.strides[axis] *= attributes.integers("stride")[axis];
  }
  lowering.define(node, view);
}

void lower_constant(Lowering& lowering, Value node) {
  for (const auto& [name, value] : lowering.program().attributes(node).entries())
    if (const auto* tensor = std::get_if<std::shared_ptr<const Tensor>>(&value))
      lowering.define(node, lowering.constant(*tensor));
}

/// Counted once, when the program is compiled, along its one axis.
void lower_iota(Lowering& lowering, Value node) {
  const TensorType& type = lowering.program().type(node);
  const std::int64_t axis = lowering.program().attributes(node).integer("axis");
  const std::int64_t extent = type.shape[index_of(axis)];
  auto numbers = std::make_shared<Tensor>(TensorType{type.dtype, {extent}});
  for (std::int64_t i = 0; i < extent; ++i) numbers->set(i, static_cast<double>(i));
  lowering.define(node, along(lowering.constant(std::move(numbers)), type.shape, Integers{axis}));
}

}  // namespace loipe::cpu
