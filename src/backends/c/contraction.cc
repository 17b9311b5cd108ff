// SPDX-License-Identifier: Apache-2.0
#include "backends/c/contraction.h"

#include <algorithm>

#include "ir/op_def.h"
#include "ops/recorded/einsum_spec.h"

namespace loipe::c {

namespace {

constexpr Label kNoLabel = ~Label{0};

Contraction of_einsum(const Program& program, Value v) {
  std::vector<const TensorType*> types;
  for (Value operand : program.operands(v)) types.push_back(&program.type(operand));
  const EinsumPlan plan(program.attributes(v).text("spec"), types);
  const auto summed = plan.labels.begin() + std::ssize(plan.spec.result);
  return {plan.extents, plan.spec.operands, plan.spec.result, {summed, plan.labels.end()},
          plan.factors, plan.masks};
}

/// Labels of the result: batch, free of lhs, free of rhs.
Contraction of_dot_general(const Program& program, Value v) {
  const auto axes = [&](const char* name) {
    const Attributes& attributes = program.attributes(v);
    return attributes.has(name) ? attributes.integers(name) : Integers{};
  };
  Contraction c;
  c.factors = {0, 1};
  for (Value operand : program.operands(v)) c.operands.emplace_back(program.shape(operand).size(), kNoLabel);
  const auto label = [&](std::size_t operand, std::int64_t axis) -> Label& {
    return c.operands[operand][static_cast<std::size_t>(axis)];
  };
  const auto extent = [&](std::size_t operand, std::int64_t axis) {
    return program.shape(program.operands(v)[operand])[static_cast<std::size_t>(axis)];
  };
  const auto pair = [&](const Integers& lhs, const Integers& rhs, std::vector<Label>& labels) {
    for (std::size_t i = 0; i < lhs.size(); ++i) {
      labels.push_back(static_cast<Label>(c.extents.size()));
      c.extents.push_back(extent(0, lhs[i]));
      label(0, lhs[i]) = label(1, rhs[i]) = labels.back();
    }
  };
  pair(axes("lhs_batch"), axes("rhs_batch"), c.result);
  pair(axes("lhs_contract"), axes("rhs_contract"), c.summed);
  for (std::size_t operand : {0u, 1u})
    for (std::size_t axis = 0; axis < c.operands[operand].size(); ++axis) {
      if (c.operands[operand][axis] != kNoLabel) continue;
      c.result.push_back(c.operands[operand][axis] = static_cast<Label>(c.extents.size()));
      c.extents.push_back(extent(operand, static_cast<std::int64_t>(axis)));
    }
  return c;
}

}  // namespace

Contraction Contraction::of(const Program& program, Value v) {
  return program.op(v).name.value == "einsum" ? of_einsum(program, v) : of_dot_general(program, v);
}

}  // namespace loipe::c
