// SPDX-License-Identifier: Apache-2.0
// The functions of loipe/trace.h that move, contract or reduce axes, and constants.
#include <algorithm>
#include <numeric>

#include "frontends/trace.h"
#include "ops/emit.h"
#include "ops/op_list.h"

namespace loipe {

namespace {

Axes all_axes(const Traced& x) {
  Axes axes(x.shape().size());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Traced reduce(const OpDef& op, std::string_view function, const Traced& x, const Axes& axes) {
  Axes sorted = from_front(function, x, axes);
  std::sort(sorted.begin(), sorted.end());
  return emit(op, {x}, {{"axes", sorted}});
}

}  // namespace

Traced dot_general(const Traced& lhs, const Traced& rhs, const DotAxes& axes) {
  Attributes attributes{{"lhs_contract", from_front("dot_general", lhs, axes.lhs_contract)},
                        {"rhs_contract", from_front("dot_general", rhs, axes.rhs_contract)}};
  if (!axes.lhs_batch.empty()) attributes.set("lhs_batch", from_front("dot_general", lhs, axes.lhs_batch));
  if (!axes.rhs_batch.empty()) attributes.set("rhs_batch", from_front("dot_general", rhs, axes.rhs_batch));
  return emit(ops::op_dot_general, {lhs, rhs}, attributes);
}

Traced matmul(const Traced& x, const Traced& y) {
  for (const Traced* operand : {&x, &y})
    if (operand->rank() < 1 || operand->rank() > 2)
      throw UserError(describe_call("matmul", {x, y}) +
                      ": expected operands of rank 1 or 2; dot_general takes any rank");
  if (x.shape().back() != y.shape().front())
    throw UserError(describe_call("matmul", {x, y}) + ": the last axis of the first operand has extent " +
                    std::to_string(x.shape().back()) + ", the first axis of the second " +
                    std::to_string(y.shape().front()));
  return dot_general(x, y, {{-1}, {0}});
}

Traced dot(const Traced& x, const Traced& y) {
  if (x.rank() != 1 || y.rank() != 1 || x.shape() != y.shape())
    throw UserError(describe_call("dot", {x, y}) + ": expected two vectors of equal length");
  return dot_general(x, y, {{0}, {0}});
}

Traced transpose(const Traced& x) {
  Axes reversed = all_axes(x);
  std::reverse(reversed.begin(), reversed.end());
  return transpose(x, reversed);
}

Traced transpose(const Traced& x, const Axes& permutation) {
  return emit(ops::op_transpose, {x}, {{"permutation", from_front("transpose", x, permutation)}});
}

Traced reshape(const Traced& x, const Shape& shape) { return emit(ops::op_reshape, {x}, {{"shape", shape}}); }

Traced broadcast_in_dim(const Traced& x, const Shape& shape, const Axes& dimensions) {
  return emit(ops::op_broadcast_in_dim, {x}, {{"shape", shape}, {"dimensions", dimensions}});
}

Traced broadcast_to(const Traced& x, const Shape& shape) {
  const std::int64_t added = static_cast<std::int64_t>(shape.size()) - x.rank();
  if (added < 0)
    throw UserError(describe_call("broadcast_to", {x}) + ": the rank is above that of the shape " +
                    to_string(shape));
  Axes dimensions = all_axes(x);
  for (std::int64_t& dimension : dimensions) dimension += added;
  return broadcast_in_dim(x, shape, dimensions);
}

Traced reverse(const Traced& x, const Axes& axes) {
  return emit(ops::op_reverse, {x}, {{"axes", from_front("reverse", x, axes)}});
}

Traced slice(const Traced& x, const Axes& start, const Axes& limit, const Axes& stride) {
  Attributes attributes{{"start", start}, {"limit", limit}};
  if (!stride.empty()) attributes.set("stride", stride);
  return emit(ops::op_slice, {x}, attributes);
}

Traced pad(const Traced& x, const Operand& value, const Axes& low, const Axes& high, const Axes& interior) {
  const Traced padding =
      value.tensor() != nullptr ? *value.tensor() : literal_beside(x, value.number(), "pad");
  const Axes between = interior.empty() ? Axes(x.shape().size(), 0) : interior;
  return emit(ops::op_pad, {x, padding}, {{"low", low}, {"high", high}, {"interior", between}});
}

Traced concatenate(const std::vector<Traced>& parts, std::int64_t axis) {
  if (parts.empty()) throw UserError("concatenate: expected at least one part");
  return emit(ops::op_concatenate, parts, {{"axis", from_front("concatenate", parts.front(), axis)}});
}

Traced sum(const Traced& x) { return sum(x, all_axes(x)); }
Traced sum(const Traced& x, const Axes& axes) { return reduce(ops::op_reduce_sum, "sum", x, axes); }

Traced mean(const Traced& x) { return mean(x, all_axes(x)); }
Traced mean(const Traced& x, const Axes& axes) {
  if (!is_floating(x.dtype()))
    throw UserError(describe_call("mean", {x}) + ": expected floating point; convert() first");
  const Shape shape = x.shape();
  std::int64_t count = 1;
  for (std::int64_t axis : from_front("mean", x, axes)) count *= shape[static_cast<std::size_t>(axis)];
  const Traced total = reduce(ops::op_reduce_sum, "mean", x, axes);
  return total / count;
}

Traced reduce_max(const Traced& x) { return reduce_max(x, all_axes(x)); }
Traced reduce_max(const Traced& x, const Axes& axes) {
  return reduce(ops::op_reduce_max, "reduce_max", x, axes);
}
Traced reduce_min(const Traced& x) { return reduce_min(x, all_axes(x)); }
Traced reduce_min(const Traced& x, const Axes& axes) {
  return reduce(ops::op_reduce_min, "reduce_min", x, axes);
}

Traced prod(const Traced& x) { return prod(x, all_axes(x)); }
Traced prod(const Traced& x, const Axes& axes) { return reduce(ops::op_reduce_prod, "prod", x, axes); }
Traced norm(const Traced& x) { return norm(x, all_axes(x)); }
Traced norm(const Traced& x, const Axes& axes) { return reduce(ops::op_norm, "norm", x, axes); }
Traced logsumexp(const Traced& x) { return logsumexp(x, all_axes(x)); }
Traced logsumexp(const Traced& x, const Axes& axes) {
  return reduce(ops::op_logsumexp, "logsumexp", x, axes);
}

Traced convert(const Traced& x, DType dtype) {
  return emit(ops::op_convert_element_type, {x}, {{"dtype", dtype}});
}

Traced stop_gradient(const Traced& x) { return emit(ops::op_stop_gradient, {x}); }

Traced constant(const Tensor& tensor) {
  return emit_in_current_trace("constant", [&](Builder& b) { return b.constant(tensor); });
}

Traced full(const Shape& shape, double value, DType dtype) {
  return emit_in_current_trace("full", [&](Builder& b) { return ops::full(b, shape, value, dtype); });
}
Traced zeros(const Shape& shape, DType dtype) {
  return emit_in_current_trace("zeros", [&](Builder& b) { return ops::full(b, shape, 0, dtype); });
}
Traced ones(const Shape& shape, DType dtype) {
  return emit_in_current_trace("ones", [&](Builder& b) { return ops::full(b, shape, 1, dtype); });
}
Traced iota(const Shape& shape, std::int64_t axis, DType dtype) {
  return emit_in_current_trace("iota", [&](Builder& b) { return ops::iota(b, shape, axis, dtype); });
}

}  // namespace loipe
