// SPDX-License-Identifier: Apache-2.0
// The op of all user-defined ops: what it does is the definition that its attribute names.
#include "ops/custom/custom_definition.h"
#include "ops/elementwise/family.h"

namespace loipe::ops {

namespace {

/// The definition that the laws are tested on: sin(x) y of two tensors of one shape.
CustomDefinition example() {
  CustomDefinition sine;
  sine.name = "loipe.example";
  sine.operand_count = 2;
  sine.infer = [](std::span<const TensorType> types) {
    if (!is_floating(types[0].dtype) || types[0] != types[1])
      throw UserError("expected two floating tensors of one type");
    return types[0];
  };
  sine.evaluate = [](std::span<const Tensor* const> operands) {
    Tensor result(operands[0]->type());
    for (std::int64_t i = 0; i < result.element_count(); ++i)
      result.set(i, std::sin(operands[0]->at(i)) * operands[1]->at(i));
    return result;
  };
  sine.jacobian = [](JacobianContext& c) {
    const Value x = c.operand(0);
    return diagonal(
        c, c.operand_index == 1 ? sin(c.builder, x) : mul(c.builder, cos(c.builder, x), c.operand(1)));
  };
  return sine;
}

const CustomDefinition& definition_of(const Attributes& attributes) {
  [[maybe_unused]] static const bool is_defined = (define_custom_op(example()), true);
  return find_custom_op(attributes.text("op"));
}

TensorType infer_custom(const InferContext& c) {
  expect_attributes(c, {"op"});
  const CustomDefinition& definition = definition_of(c.attributes);
  if (c.operands.size() != definition.operand_count)
    throw UserError("custom op '" + definition.name + "' has " + std::to_string(definition.operand_count) +
                    " operands, got " + std::to_string(c.operands.size()));
  std::vector<TensorType> types;
  for (const TensorType* type : c.operands) types.push_back(*type);
  try {
    return definition.infer(types);
  } catch (const UserError& error) {
    throw UserError("custom op '" + definition.name + "': " + error.what());
  }
}

Tensor evaluate_custom(const EvaluateContext& c) {
  const CustomDefinition& definition = definition_of(c.attributes);
  Tensor result = definition.evaluate(c.operands);
  if (result.type() != c.type)
    throw UserError("custom op '" + definition.name + "' evaluates to " + to_string(result.type()) +
                    ", but its type function says " + to_string(c.type));
  return result;
}

LocalJacobian custom_jacobian(JacobianContext& c) {
  const CustomDefinition& definition = definition_of(c.attributes());
  if (!definition.jacobian)
    throw Unsupported("custom op '" + definition.name +
                      "' has no derivative: give its definition partials, blocks, a jvp or a vjp");
  return definition.jacobian(c);
}

std::vector<Sample> custom_samples(Rng& rng) {
  std::vector<Sample> samples;
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 1, 3}, Shape{0, 2}})
    samples.push_back({{draw_tensor(rng, DType::f64, shape, between<-2.0, 2.0>),
                        draw_tensor(rng, DType::f64, shape, between<-2.0, 2.0>)},
                       {{"op", std::string("loipe.example")}}});
  return samples;
}

}  // namespace

constinit const OpDef op_custom{
    .name = "custom",
    .summary = "the user-defined op that the attribute op names",
    .arity = Arity{1, Arity::kVariadic},
    .infer = infer_custom,
    .evaluate = evaluate_custom,
    .jacobian = custom_jacobian,
    .cost = cost_functions,
    .samples = custom_samples,
    .tolerance = Tolerance::function,
};

}  // namespace loipe::ops
