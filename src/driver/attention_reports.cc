// SPDX-License-Identifier: Apache-2.0
#include "driver/attention_reports.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "driver/public_report.h"
#include "ops/op_list.h"
#include "passes/rebuild.h"

namespace loipe {

namespace {

/// For each attention that may be approximate, in their order, the node that is reported: its last VJP, else
/// itself.
std::vector<Value> reported_nodes(const Program& program) {
  std::vector<Value> reported;
  std::map<Value, std::size_t> place;  // of an attention
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    const Value node{i};
    if (&program.op(node) == &ops::op_attention && program.attributes(node).has("approximate")) {
      place.emplace(node, reported.size());
      reported.push_back(node);
    }
    if (&program.op(node) != &ops::op_attention_vjp) continue;
    // Its operand before the cotangents is the result of attention.
    const std::span<const Value> operands = program.operands(node);
    if (const auto found = place.find(operands[operands.size() - 2]); found != place.end())
      reported[found->second] = node;
  }
  return reported;
}

}  // namespace

Program with_attention_reports(const Program& program) {
  const std::vector<Value> nodes = reported_nodes(program);
  std::vector<Value> reports(nodes.size());
  Rebuild rebuild(program);
  // Right behind the node, whose large result would else be kept to the end.
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    const Value node{i}, copy = rebuild.copy(node);
    const auto found = std::ranges::find(nodes, node);
    if (found == nodes.end()) continue;
    const std::int64_t heads = program.type(program.operands(node)[0]).shape[0];
    reports[static_cast<std::size_t>(found - nodes.begin())] =
        rebuild.emit(ops::op_attention_report, {copy}, {{"heads", heads}});
  }
  Program result = rebuild.finish();
  std::vector<Value> outputs(result.outputs().begin(), result.outputs().end());
  outputs.insert(outputs.end(), reports.begin(), reports.end());
  result.set_outputs(std::move(outputs));
  return result;
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
