// SPDX-License-Identifier: Apache-2.0
#include "driver/op_support.h"

#include <algorithm>
#include <array>

#include "backends/backend.h"
#include "base/text.h"
#include "driver/derivative.h"
#include "ops/emit.h"

namespace loipe {

namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::array kKinds{DerivativeKind::jacobian, DerivativeKind::jvp, DerivativeKind::vjp,
                            DerivativeKind::hessian};

/// The first sample with numbers to differentiate by.
std::optional<Sample> a_sample(const OpDef& op) {
  Rng rng(kSeed);
  for (Sample& sample : op.samples.value(rng))
    if (std::ranges::any_of(sample.operands, [](const Tensor& operand) {
          return is_floating(operand.dtype()) && operand.element_count() > 0;
        }))
      return std::move(sample);
  return std::nullopt;
}

/// What speaks against derivatives of the op on any back end.
std::string reason_of_op(const OpDef& op, const std::optional<Sample>& sample) {
  if (!sample) return "it has no floating operand to differentiate by";
  if (const auto program = program_around(op, *sample);
      !program || !is_floating(program->type(program->outputs()[0]).dtype))
    return "its result is not floating: it is constant between jumps";
  if (!op.jacobian.value.rule) return std::string(op.jacobian.value.why_not);
  return "";
}

DerivativeRequest request_of(DerivativeKind kind, const Program& program) {
  DerivativeRequest request;
  request.kind = kind;
  request.wrt = floating_arguments(program);
  request.of = {0};
  request.order = reverse_order(program);
  request.outer_order = is_second_order(kind) ? "forward" : "";
  return request;
}

/// What speaks against it, or "".
std::string reason_against(const OpDef& op, const Sample& sample, DerivativeKind kind,
                           const Backend& backend) {
  try {
    const Program program = *program_around(op, sample);
    const DerivativeCompilation made = compile_derivative(program, request_of(kind, program), {}, false);
    return join(backend.reasons_against(made.compilation.optimised), "; ");
  } catch (const Unsupported& error) {
    return error.what();
  }
}

}  // namespace

std::span<const DerivativeKind> matrix_kinds() { return kKinds; }

std::vector<OpSupport> op_support(const OpDef& op) {
  const std::optional<Sample> sample = a_sample(op);
  const std::string reason = reason_of_op(op, sample);
  std::vector<OpSupport> fields;
  for (DerivativeKind kind : kKinds)
    for (const Backend* backend : all_backends())
      for (DType dtype : {DType::f32, DType::f64})
        fields.push_back(
            {kind, backend->name(), dtype,
             reason.empty() ? reason_against(op, in_dtype(*sample, dtype), kind, *backend) : reason});
  return fields;
}

Sample in_dtype(const Sample& sample, DType dtype) {
  Sample result;
  for (const Tensor& operand : sample.operands)
    result.operands.push_back(is_floating(operand.dtype()) ? operand.converted(dtype) : operand);
  for (const auto& [name, value] : sample.attributes.entries()) {
    AttributeValue converted = value;
    if (const DType* given = std::get_if<DType>(&value); given && is_floating(*given)) converted = dtype;
    if (const auto* given = std::get_if<std::shared_ptr<const Tensor>>(&value);
        given && is_floating((*given)->dtype()))
      converted = std::make_shared<const Tensor>((*given)->converted(dtype));
    result.attributes.set(name, std::move(converted));
  }
  return result;
}

std::optional<Program> program_around(const OpDef& op, const Sample& sample) {
  if (&op == &argument_op()) return std::nullopt;
  Builder builder("around_" + std::string(op.name.value));
  std::vector<Value> operands;
  for (std::size_t k = 0; k < sample.operands.size(); ++k)
    operands.push_back(builder.argument("x" + std::to_string(k), sample.operands[k].type()));
  for (Value& operand : operands)
    if (is_floating(builder.type(operand).dtype)) operand = ops::neg(builder, operand);
  Value result = builder.emit(op, operands, sample.attributes);
  if (is_floating(builder.type(result).dtype)) result = ops::mul(builder, 2, result);
  return builder.finish({result});
}

std::vector<Tensor> arguments_around(const Sample& sample) {
  std::vector<Tensor> arguments = sample.operands;
  for (Tensor& argument : arguments)
    if (is_floating(argument.dtype()))
      for (std::int64_t i = 0; i < argument.element_count(); ++i) argument.set(i, -argument.at(i));
  return arguments;
}

}  // namespace loipe
