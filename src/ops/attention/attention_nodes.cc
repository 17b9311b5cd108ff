// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention_nodes.h"

#include "ops/emit.h"
#include "ops/op_list.h"

namespace loipe::ops {

namespace {

Shape behind(std::int64_t first, const Shape& shape, std::size_t from) {
  Shape result{first};
  result.insert(result.end(), shape.begin() + static_cast<std::ptrdiff_t>(from), shape.end());
  return result;
}

}  // namespace

AttentionCall attention_call_of(const JacobianContext& c) {
  std::vector<const TensorType*> types;
  for (std::size_t i = 0; i < c.operand_count(); ++i) types.push_back(&c.operand_type(i));
  return AttentionCall::of(types, c.attributes());
}

AttentionNodes::AttentionNodes(const JacobianContext& c, Value result) : call_(attention_call_of(c)) {
  for (std::size_t i = 0; i < call_.primal_count; ++i) primal_.push_back(c.operand(i));
  primal_.push_back(result);
  for (const auto& [name, value] : c.attributes().entries())
    if (name != "by" && name != "along" && name != "along2") attributes_.set(name, value);
}

Value AttentionNodes::emit(Builder& b, const OpDef& op, std::span<const Value> directions,
                           std::initializer_list<Attributes::Entry> more) const {
  std::vector<Value> operands = primal_;
  operands.insert(operands.end(), directions.begin(), directions.end());
  Attributes attributes = attributes_;
  for (const auto& [name, value] : more) attributes.set(name, value);
  return b.emit(op, operands, attributes);
}

Value AttentionNodes::vjp(Builder& b, std::string_view by, Value cotangents) const {
  return emit(b, op_attention_vjp, std::span(&cotangents, 1), {{"by", std::string(by)}});
}

Value AttentionNodes::jvp(Builder& b, std::string_view along, std::span<const Value> tangents) const {
  return emit(b, op_attention_jvp, tangents, {{"along", std::string(along)}});
}

Value AttentionNodes::vjp_jvp(Builder& b, std::string_view by, std::string_view along, Value cotangents,
                              std::span<const Value> tangents) const {
  std::vector<Value> directions{cotangents};
  directions.insert(directions.end(), tangents.begin(), tangents.end());
  return emit(b, op_attention_vjp_jvp, directions, {{"along", std::string(along)}, {"by", std::string(by)}});
}

Value AttentionNodes::jvp_jvp(Builder& b, std::string_view along, std::string_view along2,
                              std::span<const Value> tangents, std::span<const Value> tangents2) const {
  std::vector<Value> directions(tangents.begin(), tangents.end());
  directions.insert(directions.end(), tangents2.begin(), tangents2.end());
  return emit(b, op_attention_jvp_jvp, directions,
              {{"along", std::string(along)}, {"along2", std::string(along2)}});
}

Value AttentionNodes::part(Builder& b, Value packed, std::string_view letters, AttentionLetter letter) const {
  const std::int64_t directions = b.shape(packed)[0];
  const std::int64_t first = call_.elements(letters.substr(0, letters.find(letter)));
  const Shape shape = call_.shape_of(letter);
  const Value flat = letters.size() == 1
                         ? packed
                         : slice(b, packed, {0, first}, {directions, first + element_count(shape)}, {1, 1});
  return reshape(b, flat, behind(directions, shape, 0));
}

std::vector<Value> AttentionNodes::parts(Builder& b, Value packed, std::string_view letters) const {
  std::vector<Value> result;
  for (AttentionLetter letter : letters) result.push_back(part(b, packed, letters, letter));
  return result;
}

Value joined_directions(Builder& b, Value x) {
  const Shape shape = b.shape(x);
  return reshape(b, x, behind(shape[0] * shape[1], shape, 2));
}

Value split_directions(Builder& b, Value x, std::int64_t outer) {
  const Shape shape = b.shape(x);
  const std::int64_t inner = outer == 0 ? 0 : shape[0] / outer;
  return reshape(b, x, behind(outer, behind(inner, shape, 1), 0));
}

Value repeated_before(Builder& b, Value x, std::int64_t outer) {
  if (outer == 1) return x;
  const Shape shape = b.shape(x);
  Integers axes;
  for (std::size_t k = 0; k < shape.size(); ++k) axes.push_back(static_cast<std::int64_t>(k) + 1);
  return joined_directions(b, broadcast_in_dim(b, x, behind(outer, shape, 0), axes));
}

Value repeated_behind(Builder& b, Value x, std::int64_t inner) {
  if (inner == 1) return x;
  const Shape shape = b.shape(x);
  Integers axes{0};
  for (std::size_t k = 1; k < shape.size(); ++k) axes.push_back(static_cast<std::int64_t>(k) + 1);
  const Shape repeated = behind(shape[0], behind(inner, shape, 1), 0);
  return joined_directions(b, broadcast_in_dim(b, x, repeated, axes));
}

}  // namespace loipe::ops
