// SPDX-License-Identifier: Apache-2.0
#include "driver/attention_reports.h"

#include <cstring>

#include "attention/planner/planner.h"
#include "ir/builder.h"
#include "ops/op_list.h"

namespace loipe {

namespace {

using attention::approximate::HeadReport;

/// The attention op that a derivative's operand is, and where it is.
std::vector<Value> approximate_attentions(const Program& program) {
  std::vector<Value> found;
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    const Value node{i};
    if (&program.op(node) == &ops::op_attention && program.attributes(node).has("approximate"))
      found.push_back(node);
  }
  return found;
}

/// Its operand before the cotangents is the result of attention.
Value differentiated_attention(const Program& program, Value vjp) {
  const std::span<const Value> operands = program.operands(vjp);
  return operands[operands.size() - 2];
}

MeasuredError measured(const attention::approximate::Measured& m) { return {m.value, m.low, m.high}; }

std::int64_t whole(double number) { return static_cast<std::int64_t>(number); }

}  // namespace

Program with_attention_reports(const Program& program) {
  Builder b(program);
  std::vector<Value> outputs(program.outputs().begin(), program.outputs().end());
  for (Value attention : approximate_attentions(program)) {
    Value reported = attention;
    for (std::uint32_t i = 0; i < program.size(); ++i)
      if (&program.op({i}) == &ops::op_attention_vjp && differentiated_attention(program, {i}) == attention)
        reported = {i};
    const std::int64_t heads = program.type(attention).shape[0];
    outputs.push_back(b.emit(ops::op_attention_report, std::span(&reported, 1), {{"heads", heads}}));
  }
  return b.finish(std::move(outputs));
}

AttentionHeadReport public_report(const HeadReport& r) {
  constexpr const char* kColumnAudits[] = {"none", "exact columns", "pairs"};
  const auto method = [](double code) { return static_cast<AttentionMethod>(whole(code)); };
  return {.forward = method(r.method),
          .backward = method(r.backward_method),
          .coefficients = static_cast<AttentionCoefficients>(whole(r.coefficients)),
          .degree = static_cast<int>(whole(r.degree)),
          .features = whole(r.features),
          .rank = whole(r.rank),
          .near = whole(r.near),
          .clusters = whole(r.clusters),
          .exact_keys = whole(r.exact_keys),
          .logit_spread = r.logit_spread,
          .logit_bound = r.logit_bound,
          .largest_logit = r.largest_logit,
          .effective_rank = r.effective_rank,
          .predicted_error = r.predicted_error,
          .predicted_flops = r.work,
          .reason = std::string(attention::planner::reason_text(static_cast<int>(whole(r.reason)))),
          .escalations = static_cast<int>(whole(r.escalations)),
          .guarded_rows = whole(r.guarded_rows),
          .o = measured(r.o),
          .dq = measured(r.dq),
          .dk = measured(r.dk),
          .dv = measured(r.dv),
          .column_audit = kColumnAudits[whole(r.column_audit)],
          .bound_o = r.bound_o,
          .bound_dq = r.bound_dq,
          .bound_dk = r.bound_dk,
          .bound_dv = r.bound_dv};
}

AttentionReport report_of(const Tensor& rows) {
  AttentionReport report;
  for (std::int64_t head = 0; head < rows.shape()[0]; ++head) {
    HeadReport row;
    std::memcpy(&row, rows.elements<double>().data() + head * attention::approximate::kReportColumns,
                sizeof(row));
    report.heads.push_back(public_report(row));
  }
  return report;
}

}  // namespace loipe
