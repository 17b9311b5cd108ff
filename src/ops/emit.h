// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "ir/builder.h"

// One short function per op that the compiler itself emits: in local Jacobian
// rules, in elimination, in passes. Each adds exactly one node, unless it says otherwise.

namespace loipe::ops {

Value neg(Builder& b, Value x);
Value abs(Builder& b, Value x);
Value sign(Builder& b, Value x);
Value round(Builder& b, Value x);
Value exp(Builder& b, Value x);
Value expm1(Builder& b, Value x);
Value log(Builder& b, Value x);
Value log1p(Builder& b, Value x);
Value logistic(Builder& b, Value x);
Value erfc(Builder& b, Value x);
Value sqrt(Builder& b, Value x);
Value rsqrt(Builder& b, Value x);
Value sin(Builder& b, Value x);
Value cos(Builder& b, Value x);
Value sinh(Builder& b, Value x);
Value cosh(Builder& b, Value x);
Value tanh(Builder& b, Value x);
Value integer_pow(Builder& b, Value x, std::int64_t y);

Value add(Builder& b, Value x, Value y);
Value sub(Builder& b, Value x, Value y);
Value mul(Builder& b, Value x, Value y);
Value div(Builder& b, Value x, Value y);
Value pow(Builder& b, Value x, Value y);
Value max(Builder& b, Value x, Value y);
Value min(Builder& b, Value x, Value y);

// A number stands for the rank-0 constant of the other operand's dtype.
Value add(Builder& b, Value x, double y);
Value sub(Builder& b, double x, Value y);
Value sub(Builder& b, Value x, double y);
Value mul(Builder& b, double x, Value y);
Value div(Builder& b, double x, Value y);

// Comparisons give bool.
Value eq(Builder& b, Value x, Value y);
Value ne(Builder& b, Value x, Value y);
Value lt(Builder& b, Value x, Value y);
Value le(Builder& b, Value x, Value y);
Value gt(Builder& b, Value x, Value y);
Value ge(Builder& b, Value x, Value y);
Value eq(Builder& b, Value x, double y);
Value ne(Builder& b, Value x, double y);
Value lt(Builder& b, Value x, double y);
Value gt(Builder& b, Value x, double y);

Value logical_and(Builder& b, Value x, Value y);
Value logical_or(Builder& b, Value x, Value y);
Value logical_not(Builder& b, Value x);
/// condition ? on_true : on_false, entry by entry.
Value select(Builder& b, Value condition, Value on_true, Value on_false);
Value select(Builder& b, Value condition, double on_true, Value on_false);
Value select(Builder& b, Value condition, Value on_true, double on_false);

Value reshape(Builder& b, Value x, const Shape& shape);
/// Axis k of x becomes axis dimensions[k] of the result.
Value broadcast_in_dim(Builder& b, Value x, const Shape& shape, const Integers& dimensions);
/// Axis k of the result is axis permutation[k] of x.
Value transpose(Builder& b, Value x, const Integers& permutation);
Value slice(Builder& b, Value x, const Integers& start, const Integers& limit, const Integers& stride = {});
Value pad(Builder& b, Value x, Value padding, const Integers& low, const Integers& high,
          const Integers& interior);
Value concatenate(Builder& b, std::span<const Value> parts, std::int64_t axis);

Value reduce_sum(Builder& b, Value x, const Integers& axes);
Value reduce_max(Builder& b, Value x, const Integers& axes);
Value reduce_min(Builder& b, Value x, const Integers& axes);

/// The entries along these axes in the opposite order.
Value reverse(Builder& b, Value x, const Integers& axes);
/// y_i = a_i y_(i-1) + b_i along the last axis, y_(-1) = 0; backwards: y_(i+1), from the last on.
Value linear_recurrence(Builder& b, Value a, Value x, bool backwards);
/// Sums, or products, of the entries up to each place of the last axis; exclusive: without its own.
Value cumsum(Builder& b, Value x, bool backwards, bool exclusive = false);
Value cumprod(Builder& b, Value x, bool backwards, bool exclusive = false);

/// Axes of the result: batch, free axes of lhs, free axes of rhs.
Value dot_general(Builder& b, Value lhs, Value rhs, const Integers& lhs_contract,
                  const Integers& rhs_contract, const Integers& lhs_batch = {},
                  const Integers& rhs_batch = {});

Value convert(Builder& b, Value x, DType dtype);
Value stop_gradient(Builder& b, Value x);
Value iota(Builder& b, const Shape& shape, std::int64_t axis, DType dtype);
/// A tensor of equal entries: a scalar constant and, above rank 0, its broadcast.
Value full(Builder& b, Shape shape, double value, DType dtype);

}  // namespace loipe::ops
