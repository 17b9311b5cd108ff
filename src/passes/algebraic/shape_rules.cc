// SPDX-License-Identifier: Apache-2.0
// Rules of ops that only move elements. Their normal form is a reshape wherever the
// row-major order of the elements stays, and a broadcast straight from the scalar
// wherever all elements are one.
#include <algorithm>

#include "ops/op_list.h"
#include "ops/shape_checks.h"
#include "passes/algebraic/simplifier.h"

namespace loipe::passes {

namespace {

using namespace ops;

Value reshaped(Simplifier& s, Value x, const Shape& shape) {
  return s.emit(op_reshape, {x}, {{"shape", shape}});
}

/// Moving the elements of a repeated scalar is repeating it in another shape.
std::optional<Value> repeated_scalar(Simplifier& s, const Call& c) {
  const auto scalar = s.operand_if(c.operands[0], op_broadcast_in_dim);
  if (!scalar || !s.shape(*scalar).empty()) return std::nullopt;
  return s.spread(*scalar, c.type.shape);
}

std::optional<Value> reshape(Simplifier& s, const Call& c) {
  const Value x = c.operands[0];
  if (s.shape(x) == c.type.shape) return x;
  if (const auto origin = s.operand_if(x, op_reshape)) return reshaped(s, *origin, c.type.shape);
  return repeated_scalar(s, c);
}

/// Only axes of extent 1 change places.
bool keeps_order(const Shape& shape, const Integers& permutation) {
  std::int64_t last = -1;
  for (std::int64_t axis : permutation) {
    if (shape[index_of(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

std::optional<Value> transpose(Simplifier& s, const Call& c) {
  const Value x = c.operands[0];
  const Integers& outer = c.attributes.integers("permutation");
  if (keeps_order(s.shape(x), outer)) return reshaped(s, x, c.type.shape);
  if (const auto origin = s.operand_if(x, op_transpose)) {
    const Integers& inner = s.program().attributes(x).integers("permutation");
    Integers both;
    for (std::int64_t axis : outer) both.push_back(inner[index_of(axis)]);
    return s.emit(op_transpose, {*origin}, {{"permutation", both}});
  }
  return repeated_scalar(s, c);
}

std::optional<Value> broadcast(Simplifier& s, const Call& c) {
  const Value x = c.operands[0];
  if (s.type(x).element_count() == c.type.element_count()) return reshaped(s, x, c.type.shape);
  const auto origin = s.operand_if(x, op_broadcast_in_dim);
  if (!origin) return std::nullopt;
  const Integers& outer = c.attributes.integers("dimensions");
  Integers both;
  for (std::int64_t axis : s.program().attributes(x).integers("dimensions"))
    both.push_back(outer[index_of(axis)]);
  return s.emit(op_broadcast_in_dim, {*origin}, {{"shape", c.type.shape}, {"dimensions", both}});
}

/// A slice that keeps all extents keeps all elements.
std::optional<Value> slice(Simplifier& s, const Call& c) {
  if (s.shape(c.operands[0]) == c.type.shape) return c.operands[0];
  return repeated_scalar(s, c);
}

std::optional<Value> pad(Simplifier& s, const Call& c) {
  const auto is_zero = [](std::int64_t width) { return width == 0; };
  if (s.shape(c.operands[0]) == c.type.shape && std::ranges::all_of(c.attributes.integers("low"), is_zero) &&
      std::ranges::all_of(c.attributes.integers("high"), is_zero))
    return c.operands[0];
  return std::nullopt;
}

std::optional<Value> concatenate(Simplifier&, const Call& c) {
  if (c.operands.size() == 1) return c.operands[0];
  return std::nullopt;
}

/// The sum, largest or smallest of one element is that element.
std::optional<Value> reduce(Simplifier& s, const Call& c) {
  for (std::int64_t axis : c.attributes.integers("axes"))
    if (s.shape(c.operands[0])[index_of(axis)] != 1) return std::nullopt;
  return reshaped(s, c.operands[0], c.type.shape);
}

}  // namespace

std::span<const RuleOfOp> shape_rules() {
  static constexpr RuleOfOp kRules[] = {{&op_reshape, reshape},
                                        {&op_transpose, transpose},
                                        {&op_broadcast_in_dim, broadcast},
                                        {&op_slice, slice},
                                        {&op_pad, pad},
                                        {&op_concatenate, concatenate},
                                        {&op_reduce_sum, reduce},
                                        {&op_reduce_max, reduce},
                                        {&op_reduce_min, reduce}};
  return kRules;
}

}  // namespace loipe::passes
