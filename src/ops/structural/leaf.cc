// SPDX-License-Identifier: Apache-2.0
// Ops without operands: argument, constant, iota.
#include "base/check.h"
#include "ops/elementwise/family.h"

namespace loipe::ops {

namespace {

constexpr Differentiation kNoOperands = Differentiation::none("it has no operands");

Tensor evaluate_argument(const EvaluateContext&) {
  throw InternalError("an argument has no evaluation: its value is given by the caller");
}

TensorType infer_iota(const InferContext& c) {
  expect_attributes(c, {"axis", "dtype", "shape"});
  const TensorType type{c.attributes.dtype("dtype"), c.attributes.integers("shape")};
  const std::int64_t axis = c.attributes.integer("axis");
  if (type.dtype == DType::boolean) throw UserError("dtype=bool cannot count, expected a number type");
  if (axis < 0 || axis >= type.rank())
    throw UserError("axis=" + std::to_string(axis) + " is not an axis of shape " + to_string(type.shape));
  return type;
}

Tensor evaluate_iota(const EvaluateContext& c) {
  Tensor result(c.type);
  View along_axis{Integers(c.type.shape.size(), 0)};
  along_axis.strides[index_of(c.attributes.integer("axis"))] = 1;
  std::int64_t position = 0;
  for_each_index(c.type.shape, std::array{along_axis}, [&](const std::array<std::size_t, 1>& at) {
    result.set(position++, static_cast<double>(at[0]));
  });
  return result;
}

std::vector<Sample> iota_samples(Rng&) {
  const auto sample = [](DType dtype, Integers shape, std::int64_t axis) {
    return Sample{{}, {{"dtype", dtype}, {"shape", std::move(shape)}, {"axis", axis}}};
  };
  return {sample(DType::f64, {4}, 0), sample(DType::i32, {2, 3}, 1), sample(DType::i64, {2, 1, 3}, 0),
          sample(DType::f64, {0, 2}, 1)};
}

std::vector<Sample> constant_samples(Rng& rng) {
  std::vector<Sample> samples;
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{2, 3}, Shape{0}})
    for (DType dtype : {DType::f64, DType::i32, DType::i64, DType::boolean}) {
      auto value = std::make_shared<const Tensor>(draw_tensor(rng, dtype, shape, small_integer));
      samples.push_back({{}, {{"value", std::move(value)}}});
    }
  return samples;
}

}  // namespace

constinit const OpDef op_argument{
    .name = "argument",
    .summary = "an input of the program",
    .arity = kNullary,
    .infer = [](const InferContext&) -> TensorType {
      throw UserError("an argument is declared with the program, not computed by a node");
    },
    .evaluate = evaluate_argument,
    .jacobian = kNoOperands,
    .cost = cost_free,
    .samples = [](Rng&) { return std::vector<Sample>(); },
    .tolerance = Tolerance::exact,
};

constinit const OpDef op_constant{
    .name = "constant",
    .summary = "a tensor that is part of the program",
    .arity = kNullary,
    .infer =
        [](const InferContext& c) {
          expect_attributes(c, {"value"});
          return c.attributes.tensor("value").type();
        },
    .evaluate = [](const EvaluateContext& c) { return c.attributes.tensor("value"); },
    .jacobian = kNoOperands,
    .cost = cost_free,
    .samples = constant_samples,
    .tolerance = Tolerance::exact,
    .onnx_name = "Constant",
};

constinit const OpDef op_iota{
    .name = "iota",
    .summary = "0, 1, 2, ... along one axis",
    .arity = kNullary,
    .infer = infer_iota,
    .evaluate = evaluate_iota,
    .jacobian = kNoOperands,
    .cost = cost_free,
    .samples = iota_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "iota",
};

}  // namespace loipe::ops
