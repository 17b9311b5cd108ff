// SPDX-License-Identifier: Apache-2.0
#include "driver/attention_reports.h"

#include <array>
#include <bit>

#include "driver/public_report.h"
#include "ir/builder.h"
#include "ops/op_list.h"

namespace loipe {

namespace {

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

AttentionReport report_of(const Tensor& rows) {
  AttentionReport report;
  std::array<double, attention::approximate::kReportColumns> row;
  for (std::int64_t next = 0; next < rows.element_count();) {
    for (double& number : row) number = rows.at(next++);
    report.heads.push_back(public_report(std::bit_cast<attention::approximate::HeadReport>(row)));
  }
  return report;
}

}  // namespace loipe
