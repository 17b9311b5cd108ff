// SPDX-License-Identifier: Apache-2.0
// after: an order in time between values that need none. Recomputation puts it in front of
// what is computed a second time, so that no pass and no back end does that early.
#include "ops/elementwise/family.h"

namespace loipe::ops {

namespace {

std::vector<Sample> after_samples(Rng& rng) {
  std::vector<Sample> samples;
  for (const Shape& shape : {Shape{}, Shape{2}, Shape{1, 3}, Shape{0}})
    samples.push_back({{draw_tensor(rng, DType::f64, shape, between<-2.0, 2.0>),
                        draw_tensor(rng, DType::f64, {2}, between<-2.0, 2.0>)},
                       {}});
  return samples;
}

}  // namespace

constinit const OpDef op_after{
    .name = "after",
    .summary = "the first operand, not before the second one is computed",
    .arity = kBinary,
    .infer =
        [](const InferContext& c) {
          expect_attributes(c, {});
          return c.operand(0);
        },
    .evaluate = [](const EvaluateContext& c) { return c.operand(0); },
    .jacobian =
        [](JacobianContext& c) { return c.operand_index == 0 ? diagonal(c, 1) : LocalJacobian::zero(); },
    .cost = cost_free,
    .samples = after_samples,
    .tolerance = Tolerance::exact,
    .jax_name = "optimization_barrier",
};

}  // namespace loipe::ops
