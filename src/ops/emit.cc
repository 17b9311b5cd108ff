// SPDX-License-Identifier: Apache-2.0
#include "ops/emit.h"

#include "ops/op_list.h"

namespace loipe::ops {

namespace {

/// The rank-0 constant of the dtype of `other`.
Value scalar_like(Builder& b, double value, Value other) { return b.scalar(value, b.type(other).dtype); }

}  // namespace

Value neg(Builder& b, Value x) { return b.emit(op_neg, {x}); }
Value abs(Builder& b, Value x) { return b.emit(op_abs, {x}); }
Value sign(Builder& b, Value x) { return b.emit(op_sign, {x}); }
Value round(Builder& b, Value x) { return b.emit(op_round, {x}); }
Value exp(Builder& b, Value x) { return b.emit(op_exp, {x}); }
Value expm1(Builder& b, Value x) { return b.emit(op_expm1, {x}); }
Value log(Builder& b, Value x) { return b.emit(op_log, {x}); }
Value log1p(Builder& b, Value x) { return b.emit(op_log1p, {x}); }
Value logistic(Builder& b, Value x) { return b.emit(op_logistic, {x}); }
Value erfc(Builder& b, Value x) { return b.emit(op_erfc, {x}); }
Value sqrt(Builder& b, Value x) { return b.emit(op_sqrt, {x}); }
Value rsqrt(Builder& b, Value x) { return b.emit(op_rsqrt, {x}); }
Value sin(Builder& b, Value x) { return b.emit(op_sin, {x}); }
Value cos(Builder& b, Value x) { return b.emit(op_cos, {x}); }
Value sinh(Builder& b, Value x) { return b.emit(op_sinh, {x}); }
Value cosh(Builder& b, Value x) { return b.emit(op_cosh, {x}); }
Value tanh(Builder& b, Value x) { return b.emit(op_tanh, {x}); }
Value integer_pow(Builder& b, Value x, std::int64_t y) { return b.emit(op_integer_pow, {x}, {{"y", y}}); }

Value add(Builder& b, Value x, Value y) { return b.emit(op_add, {x, y}); }
Value sub(Builder& b, Value x, Value y) { return b.emit(op_sub, {x, y}); }
Value mul(Builder& b, Value x, Value y) { return b.emit(op_mul, {x, y}); }
Value div(Builder& b, Value x, Value y) { return b.emit(op_div, {x, y}); }
Value pow(Builder& b, Value x, Value y) { return b.emit(op_pow, {x, y}); }
Value max(Builder& b, Value x, Value y) { return b.emit(op_max, {x, y}); }
Value min(Builder& b, Value x, Value y) { return b.emit(op_min, {x, y}); }

Value add(Builder& b, Value x, double y) { return add(b, x, scalar_like(b, y, x)); }
Value sub(Builder& b, double x, Value y) { return sub(b, scalar_like(b, x, y), y); }
Value sub(Builder& b, Value x, double y) { return sub(b, x, scalar_like(b, y, x)); }
Value mul(Builder& b, double x, Value y) { return mul(b, scalar_like(b, x, y), y); }
Value div(Builder& b, double x, Value y) { return div(b, scalar_like(b, x, y), y); }

Value eq(Builder& b, Value x, Value y) { return b.emit(op_eq, {x, y}); }
Value ne(Builder& b, Value x, Value y) { return b.emit(op_ne, {x, y}); }
Value lt(Builder& b, Value x, Value y) { return b.emit(op_lt, {x, y}); }
Value le(Builder& b, Value x, Value y) { return b.emit(op_le, {x, y}); }
Value gt(Builder& b, Value x, Value y) { return b.emit(op_gt, {x, y}); }
Value ge(Builder& b, Value x, Value y) { return b.emit(op_ge, {x, y}); }
Value eq(Builder& b, Value x, double y) { return eq(b, x, scalar_like(b, y, x)); }
Value ne(Builder& b, Value x, double y) { return ne(b, x, scalar_like(b, y, x)); }
Value lt(Builder& b, Value x, double y) { return lt(b, x, scalar_like(b, y, x)); }
Value gt(Builder& b, Value x, double y) { return gt(b, x, scalar_like(b, y, x)); }

Value logical_and(Builder& b, Value x, Value y) { return b.emit(op_and, {x, y}); }
Value logical_or(Builder& b, Value x, Value y) { return b.emit(op_or, {x, y}); }
Value logical_not(Builder& b, Value x) { return b.emit(op_not, {x}); }
Value select(Builder& b, Value condition, Value on_true, Value on_false) {
  return b.emit(op_select, {condition, on_true, on_false});
}
Value select(Builder& b, Value condition, double on_true, Value on_false) {
  return select(b, condition, scalar_like(b, on_true, on_false), on_false);
}
Value select(Builder& b, Value condition, Value on_true, double on_false) {
  return select(b, condition, on_true, scalar_like(b, on_false, on_true));
}

Value reshape(Builder& b, Value x, const Shape& shape) { return b.emit(op_reshape, {x}, {{"shape", shape}}); }
Value broadcast_in_dim(Builder& b, Value x, const Shape& shape, const Integers& dimensions) {
  return b.emit(op_broadcast_in_dim, {x}, {{"shape", shape}, {"dimensions", dimensions}});
}
Value transpose(Builder& b, Value x, const Integers& permutation) {
  return b.emit(op_transpose, {x}, {{"permutation", permutation}});
}
Value slice(Builder& b, Value x, const Integers& start, const Integers& limit, const Integers& stride) {
  Attributes attributes{{"start", start}, {"limit", limit}};
  if (!stride.empty()) attributes.set("stride", stride);
  return b.emit(op_slice, {x}, attributes);
}
Value pad(Builder& b, Value x, Value padding, const Integers& low, const Integers& high,
          const Integers& interior) {
  return b.emit(op_pad, {x, padding}, {{"low", low}, {"high", high}, {"interior", interior}});
}
Value concatenate(Builder& b, std::span<const Value> parts, std::int64_t axis) {
  return b.emit(op_concatenate, parts, {{"axis", axis}});
}

Value reduce_sum(Builder& b, Value x, const Integers& axes) {
  return b.emit(op_reduce_sum, {x}, {{"axes", axes}});
}
Value reduce_max(Builder& b, Value x, const Integers& axes) {
  return b.emit(op_reduce_max, {x}, {{"axes", axes}});
}
Value reduce_min(Builder& b, Value x, const Integers& axes) {
  return b.emit(op_reduce_min, {x}, {{"axes", axes}});
}

Value reverse(Builder& b, Value x, const Integers& axes) { return b.emit(op_reverse, {x}, {{"axes", axes}}); }
Value linear_recurrence(Builder& b, Value a, Value x, bool backwards) {
  return b.emit(op_linear_recurrence, {a, x}, {{"reverse", std::int64_t{backwards}}});
}
Value cumsum(Builder& b, Value x, bool backwards, bool exclusive) {
  return b.emit(op_cumsum, {x},
                {{"reverse", std::int64_t{backwards}}, {"exclusive", std::int64_t{exclusive}}});
}
Value cumprod(Builder& b, Value x, bool backwards, bool exclusive) {
  return b.emit(op_cumprod, {x},
                {{"reverse", std::int64_t{backwards}}, {"exclusive", std::int64_t{exclusive}}});
}

Value dot_general(Builder& b, Value lhs, Value rhs, const Integers& lhs_contract,
                  const Integers& rhs_contract, const Integers& lhs_batch, const Integers& rhs_batch) {
  Attributes attributes{{"lhs_contract", lhs_contract}, {"rhs_contract", rhs_contract}};
  if (!lhs_batch.empty()) attributes.set("lhs_batch", lhs_batch);
  if (!rhs_batch.empty()) attributes.set("rhs_batch", rhs_batch);
  return b.emit(op_dot_general, {lhs, rhs}, attributes);
}

Value convert(Builder& b, Value x, DType dtype) {
  return b.emit(op_convert_element_type, {x}, {{"dtype", dtype}});
}
Value stop_gradient(Builder& b, Value x) { return b.emit(op_stop_gradient, {x}); }
Value iota(Builder& b, const Shape& shape, std::int64_t axis, DType dtype) {
  return b.emit(op_iota, std::span<const Value>(), {{"dtype", dtype}, {"shape", shape}, {"axis", axis}});
}
Value full(Builder& b, Shape shape, double value, DType dtype) {
  const Value scalar = b.scalar(value, dtype);
  return shape.empty() ? scalar : broadcast_in_dim(b, scalar, shape, {});
}

}  // namespace loipe::ops
