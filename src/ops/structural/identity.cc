// SPDX-License-Identifier: Apache-2.0
// Ops that keep every entry: convert_element_type, stop_gradient.
#include "ops/elementwise/family.h"

namespace loipe::ops {

namespace {

TensorType infer_convert(const InferContext& c) {
  expect_attributes(c, {"dtype"});
  return {c.attributes.dtype("dtype"), c.operand(0).shape};
}

/// The identity between floating dtypes; what becomes an integer or bool is cut off.
LocalJacobian convert_jacobian(JacobianContext& c) {
  return is_floating(c.dtype()) ? diagonal(c, 1) : LocalJacobian::zero();
}

std::vector<Sample> convert_samples(Rng& rng) {
  std::vector<Sample> samples;
  const Draw draws[] = {between<-3.0, 3.0>};
  for (DType from : {DType::f64, DType::i32, DType::boolean})
    for (DType to : {DType::f64, DType::i32, DType::i64, DType::boolean}) {
      const DType dtypes[] = {from};
      for (Sample& sample : elementwise_samples(rng, dtypes, draws, {{"dtype", to}}))
        samples.push_back(std::move(sample));
    }
  return samples;
}

std::vector<Sample> any_samples(Rng& rng) {
  std::vector<Sample> samples = numeric_samples<between<-2.0, 2.0>>(rng);
  for (Sample& sample : integral_samples(rng, DType::boolean, 1)) samples.push_back(std::move(sample));
  return samples;
}

}  // namespace

constinit const OpDef op_convert_element_type{
    .name = "convert_element_type",
    .summary = "the same entries in another dtype; to integers truncated, to bool \"is not 0\"",
    .arity = kUnary,
    .infer = infer_convert,
    .evaluate = [](const EvaluateContext& c) { return c.operand(0).converted(c.type.dtype); },
    .jacobian = convert_jacobian,
    .cost = cost_free,
    .samples = convert_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "convert_element_type",
    .onnx_name = "Cast",
};

constinit const OpDef op_stop_gradient{
    .name = "stop_gradient",
    .summary = "x, treated as a constant by differentiation",
    .arity = kUnary,
    .infer =
        [](const InferContext& c) {
          expect_attributes(c, {});
          return c.operand(0);
        },
    .evaluate = [](const EvaluateContext& c) { return c.operand(0); },
    .jacobian = zero_jacobian,
    .cost = cost_free,
    .samples = any_samples,
    .tolerance = Tolerance::exact,
};

}  // namespace loipe::ops
