// SPDX-License-Identifier: Apache-2.0
// attention_report: what the evaluation of an attention, or of its VJP, noted beside its result: one row of
// attention::approximate::HeadReport for each head of keys. By definition attention is exact, and so is
// the reference evaluation: it reports exact heads without error.
#include <array>
#include <bit>

#include "attention/approximate/report.h"
#include "ops/elementwise/family.h"
#include "ops/op_list.h"
#include "ops/shape_checks.h"

namespace loipe::ops {

namespace {

using attention::approximate::kReportColumns;

TensorType infer_report(const InferContext& c) {
  expect_attributes(c, {"heads"});
  const std::int64_t heads = c.attributes.integer("heads");
  if (heads < 0)
    throw UserError("heads is " + std::to_string(heads) + ", expected the number of heads of keys");
  return {c.operand(0).dtype, {heads, kReportColumns}};
}

Tensor evaluate_report(const EvaluateContext& c) {
  Tensor result(c.type);
  const auto row = std::bit_cast<std::array<double, kReportColumns>>(attention::approximate::exact_report());
  for (std::int64_t i = 0; i < result.element_count(); ++i)
    result.set(i, row[static_cast<std::size_t>(i % kReportColumns)]);
  return result;
}

std::vector<Sample> report_samples(Rng& rng) {
  const Tensor result = draw_tensor(rng, DType::f64, {2, 1, 3, 2}, between<-1.0, 1.0>);
  return {{{result}, {{"heads", std::int64_t{2}}}}, {{result}, {{"heads", std::int64_t{0}}}}};
}

}  // namespace

constinit const OpDef op_attention_report{
    .name = "attention_report",
    .summary = "what the evaluation of attention or attention_vjp noted for each head of keys",
    .arity = kUnary,
    .infer = infer_report,
    .evaluate = evaluate_report,
    .jacobian = [](JacobianContext&) { return LocalJacobian::zero(); },
    .cost = cost_free,
    .samples = report_samples,
    .tolerance = Tolerance::exact,
};

}  // namespace loipe::ops
