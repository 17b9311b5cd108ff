// SPDX-License-Identifier: Apache-2.0
// The functions of loipe/trace.h on the elements along one axis. Their ops work along the
// last axis, so that all others are a batch; another axis is moved there and back.
#include "frontends/trace.h"
#include "ops/op_list.h"

namespace loipe {

namespace {

/// The permutation that moves an axis behind all others.
Axes to_last(std::size_t rank, std::int64_t axis) {
  Axes permutation;
  for (std::size_t k = 0; k < rank; ++k)
    if (static_cast<std::int64_t>(k) != axis) permutation.push_back(static_cast<std::int64_t>(k));
  permutation.push_back(axis);
  return permutation;
}

Axes inverse(const Axes& permutation) {
  Axes result(permutation.size());
  for (std::size_t k = 0; k < permutation.size(); ++k)
    result[static_cast<std::size_t>(permutation[k])] = static_cast<std::int64_t>(k);
  return result;
}

/// The op along an axis of its operands, which have one rank.
Traced along(const OpDef& op, std::string_view function, std::initializer_list<Traced> operands,
             std::int64_t axis, const Attributes& attributes = {}) {
  const Traced& first = *operands.begin();
  const std::int64_t from = from_front(function, first, axis);
  if (from == first.rank() - 1) return emit(op, operands, attributes);
  const Axes permutation = to_last(first.shape().size(), from);
  std::vector<Traced> moved;
  for (const Traced& operand : operands) moved.push_back(transpose(operand, permutation));
  return transpose(emit(op, moved, attributes), inverse(permutation));
}

Attributes scan_attributes(const ScanOptions& options) {
  return {{"exclusive", std::int64_t{options.exclusive}}, {"reverse", std::int64_t{options.reverse}}};
}

}  // namespace

Traced softmax(const Traced& x, std::int64_t axis) { return along(ops::op_softmax, "softmax", {x}, axis); }
Traced log_softmax(const Traced& x, std::int64_t axis) {
  return along(ops::op_log_softmax, "log_softmax", {x}, axis);
}

Traced layer_norm(const Traced& x, double eps) { return emit(ops::op_layer_norm, {x}, {{"eps", eps}}); }
Traced layer_norm(const Traced& x, const Traced& scale, const Traced& bias, double eps) {
  return emit(ops::op_layer_norm, {x, scale, bias}, {{"eps", eps}});
}
Traced rms_norm(const Traced& x, double eps) { return emit(ops::op_rms_norm, {x}, {{"eps", eps}}); }
Traced rms_norm(const Traced& x, const Traced& scale, double eps) {
  return emit(ops::op_rms_norm, {x, scale}, {{"eps", eps}});
}

Traced cumsum(const Traced& x, std::int64_t axis, const ScanOptions& options) {
  return along(ops::op_cumsum, "cumsum", {x}, axis, scan_attributes(options));
}
Traced cumprod(const Traced& x, std::int64_t axis, const ScanOptions& options) {
  return along(ops::op_cumprod, "cumprod", {x}, axis, scan_attributes(options));
}
Traced linear_recurrence(const Traced& a, const Traced& x, std::int64_t axis, bool reverse) {
  if (a.rank() != x.rank())
    throw UserError(describe_call("linear_recurrence", {a, x}) + ": expected operands of equal rank");
  return along(ops::op_linear_recurrence, "linear_recurrence", {a, x}, axis,
               {{"reverse", std::int64_t{reverse}}});
}

Traced sort(const Traced& x, std::int64_t axis, bool descending) {
  return along(ops::op_sort, "sort", {x}, axis, {{"descending", std::int64_t{descending}}});
}
Traced argsort(const Traced& x, std::int64_t axis, bool descending) {
  return along(ops::op_argsort, "argsort", {x}, axis, {{"descending", std::int64_t{descending}}});
}
Traced top_k(const Traced& x, std::int64_t k) { return emit(ops::op_top_k, {x}, {{"k", k}}); }
Traced top_k_indices(const Traced& x, std::int64_t k) { return emit(ops::op_top_k_indices, {x}, {{"k", k}}); }

}  // namespace loipe
