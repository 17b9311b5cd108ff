// SPDX-License-Identifier: Apache-2.0
#include <loipe/custom_op.h>

#include <utility>

#include "frontends/trace.h"
#include "frontends/traced_rule.h"
#include "ops/custom/custom_definition.h"
#include "ops/op_list.h"

namespace loipe {

namespace {

void expect_complete(const CustomOpDefinition& definition) {
  const std::string owner = "custom op '" + definition.name + "'";
  if (definition.name.empty()) throw UserError("a custom op needs a name");
  if (definition.operand_count == 0)
    throw UserError(owner + " has no operands; what depends on nothing is a constant()");
  if (!definition.type || !definition.evaluate)
    throw UserError(owner + " lacks " + (definition.type ? "evaluate" : "type") +
                    "; a definition needs both type and evaluate");
  int derivatives = 0;
  for (const TracedFunction* given :
       {&definition.partials, &definition.blocks, &definition.jvp, &definition.vjp})
    if (*given) ++derivatives;
  if (derivatives > 1)
    throw UserError(
        owner + " has " + std::to_string(derivatives) +
        " derivatives; give one of partials, blocks, jvp and vjp, which is enough for every order");
}

using Rule = LocalJacobian (TracedRule::*)(const TracedFunction&);

std::function<LocalJacobian(JacobianContext&)> rule_of(const CustomOpDefinition& definition) {
  const std::pair<const TracedFunction*, Rule> kinds[] = {{&definition.partials, &TracedRule::from_partials},
                                                          {&definition.blocks, &TracedRule::from_blocks},
                                                          {&definition.jvp, &TracedRule::from_jvp},
                                                          {&definition.vjp, &TracedRule::from_vjp}};
  for (const auto& given : kinds)
    if (*given.first)
      return [owner = "custom op '" + definition.name + "'", function = *given.first, kind = given.second](
                 JacobianContext& context) { return (TracedRule(context, owner).*kind)(function); };
  return nullptr;
}

}  // namespace

CustomOp::CustomOp(CustomOpDefinition definition) : name_(definition.name) {
  expect_complete(definition);
  auto rule = rule_of(definition);
  define_custom_op({.name = definition.name,
                    .operand_count = definition.operand_count,
                    .infer = std::move(definition.type),
                    .evaluate = std::move(definition.evaluate),
                    .jacobian = std::move(rule)});
}

Traced CustomOp::call(std::span<const Traced> operands) const {
  if (operands.empty()) throw UserError("custom op '" + name_ + "': a call without operands");
  return emit(ops::op_custom, operands, {{"op", name_}});
}

}  // namespace loipe
