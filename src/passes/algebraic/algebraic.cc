// SPDX-License-Identifier: Apache-2.0
#include "passes/algebraic/algebraic.h"

#include <numeric>
#include <unordered_map>

#include "ir/builder.h"
#include "ops/op_list.h"
#include "passes/algebraic/simplifier.h"

namespace loipe::passes {

namespace {

Rule rule_of(const OpDef& op) {
  static const auto rules = [] {
    std::unordered_map<const OpDef*, Rule> map;
    for (auto group : {arithmetic_rules, logic_rules, shape_rules, indexing_rules, einsum_rules})
      for (const RuleOfOp& entry : group()) map.emplace(entry.op, entry.rule);
    return map;
  }();
  const auto place = rules.find(&op);
  return place == rules.end() ? nullptr : place->second;
}

}  // namespace

std::optional<Value> Simplifier::simplified(const Call& call) {
  const Rule rule = rule_of(call.op);
  return rule ? rule(*this, call) : std::nullopt;
}

Program Simplifier::run() {
  const Program& source = rebuild_.source();
  for (std::uint32_t i = 0; i < source.size(); ++i) {
    const Value old{i};
    const Call call{source.op(old), rebuild_.operands_of(old), source.attributes(old), source.type(old)};
    if (const auto now = simplified(call)) rebuild_.replace(old, *now);
    else rebuild_.copy(old);
  }
  return rebuild_.finish();
}

Value Simplifier::emit(const OpDef& op, std::span<const Value> operands, const Attributes& attributes) {
  std::vector<const TensorType*> types;
  for (Value operand : operands) types.push_back(&type(operand));
  const TensorType result = infer_type(op, types, attributes);
  if (const auto value = simplified({op, operands, attributes, result})) return *value;
  return rebuild_.emit(op, operands, attributes);
}

Value Simplifier::spread(Value v, const Shape& wanted) {
  if (shape(v) == wanted) return v;
  Integers dimensions(shape(v).size());
  std::iota(dimensions.begin(), dimensions.end(), std::int64_t{0});
  return emit(ops::op_broadcast_in_dim, {v}, {{"shape", wanted}, {"dimensions", dimensions}});
}

Program algebraic(const Program& program) { return Simplifier(program).run(); }

}  // namespace loipe::passes
