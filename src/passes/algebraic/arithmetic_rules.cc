// SPDX-License-Identifier: Apache-2.0
// Rounding to nearest is symmetric: round(-x) = -round(x). So a sign may move
// through products and quotients, and through the sign of a summand, but not out
// of a sum: -(x - x) is -0, while x - x is +0.
#include <cmath>

#include "ops/op_list.h"
#include "passes/algebraic/simplifier.h"

namespace loipe::passes {

namespace {

using namespace ops;

/// x + 0 = x for integers, and x + (-0) = x for all floating x, also x = -0 (the sum
/// of zeros is -0 only if both are).
bool is_neutral_summand(Simplifier& s, Value v) {
  const auto number = s.uniform(v);
  return number == 0 && (is_integer(s.type(v).dtype) || std::signbit(*number));
}

/// x - (+0) = x + (-0).
bool is_neutral_subtrahend(Simplifier& s, Value v) {
  const auto number = s.uniform(v);
  return number == 0 && !std::signbit(*number);
}

std::optional<Value> add(Simplifier& s, const Call& c) {
  for (std::size_t k : {0u, 1u}) {
    const Value x = c.operands[k], y = c.operands[1 - k];
    if (is_neutral_summand(s, y)) return s.spread(x, c.type.shape);
    if (const auto z = s.operand_if(y, op_neg)) return s.emit(op_sub, {x, *z});
  }
  return std::nullopt;
}

std::optional<Value> sub(Simplifier& s, const Call& c) {
  const Value x = c.operands[0], y = c.operands[1];
  if (is_neutral_subtrahend(s, y)) return s.spread(x, c.type.shape);
  if (const auto z = s.operand_if(y, op_neg)) return s.emit(op_add, {x, *z});
  if (is_neutral_summand(s, x)) return s.spread(s.emit(op_neg, {y}), c.type.shape);
  return std::nullopt;
}

/// Both operands are negated: the signs cancel.
std::optional<Value> without_signs(Simplifier& s, const Call& c) {
  const auto x = s.operand_if(c.operands[0], op_neg), y = s.operand_if(c.operands[1], op_neg);
  if (!x || !y) return std::nullopt;
  return s.emit(c.op, {*x, *y});
}

std::optional<Value> mul(Simplifier& s, const Call& c) {
  for (std::size_t k : {0u, 1u}) {
    const Value x = c.operands[k], factor = c.operands[1 - k];
    if (s.is_uniform(factor, 1)) return s.spread(x, c.type.shape);
    if (s.is_uniform(factor, -1)) return s.spread(s.emit(op_neg, {x}), c.type.shape);
    if (is_integer(c.type.dtype) && s.is_uniform(factor, 0)) return s.spread(factor, c.type.shape);
  }
  return without_signs(s, c);
}

std::optional<Value> div(Simplifier& s, const Call& c) {
  const Value x = c.operands[0], y = c.operands[1];
  if (s.is_uniform(y, 1)) return s.spread(x, c.type.shape);
  if (s.is_uniform(y, -1)) return s.spread(s.emit(op_neg, {x}), c.type.shape);
  // Not for integers: the smallest one is its own negative.
  return is_floating(c.type.dtype) ? without_signs(s, c) : std::nullopt;
}

std::optional<Value> neg(Simplifier& s, const Call& c) { return s.operand_if(c.operands[0], op_neg); }

/// x^0 = 1 also for NaN and infinities, and x^-1 is evaluated as 1/x.
std::optional<Value> integer_pow(Simplifier& s, const Call& c) {
  const std::int64_t y = c.attributes.integer("y");
  if (y == 1) return c.operands[0];
  if (y == 0) return s.spread(s.scalar(1, c.type.dtype), c.type.shape);
  if (y == -1) return s.emit(op_div, {s.scalar(1, c.type.dtype), c.operands[0]});
  return std::nullopt;
}

/// Whether every value of one dtype is a value of the other.
bool is_lossless(DType from, DType to) {
  switch (from) {
    case DType::boolean: return true;
    case DType::i32: return to == DType::i64 || to == DType::f64;
    case DType::f32: return to == DType::f64;
    default: return false;
  }
}

std::optional<Value> convert(Simplifier& s, const Call& c) {
  const Value x = c.operands[0];
  if (s.type(x).dtype == c.type.dtype) return x;
  const auto origin = s.operand_if(x, op_convert_element_type);
  if (origin && s.type(*origin).dtype == c.type.dtype && is_lossless(c.type.dtype, s.type(x).dtype))
    return origin;
  return std::nullopt;
}

}  // namespace

std::span<const RuleOfOp> arithmetic_rules() {
  static constexpr RuleOfOp kRules[] = {{&op_add, add},
                                        {&op_sub, sub},
                                        {&op_mul, mul},
                                        {&op_div, div},
                                        {&op_neg, neg},
                                        {&op_integer_pow, integer_pow},
                                        {&op_convert_element_type, convert}};
  return kRules;
}

}  // namespace loipe::passes
