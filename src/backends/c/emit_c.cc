// SPDX-License-Identifier: Apache-2.0
#include "backends/c/emit_c.h"

#include <loipe/error.h>

#include <algorithm>

#include "backends/c/elementwise.h"
#include "backends/c/loops.h"
#include "backends/c/movement.h"
#include "backends/c/nests.h"
#include "backends/c/straight_line.h"
#include "backends/scalar/scalarize.h"
#include "base/text.h"
#include "ir/op_def.h"
#include "passes/dead_code/dead_code.h"
#include "passes/expansion/expansion.h"

namespace loipe::c {

namespace {

bool is_written(const Program& program, Value v) {
  static constexpr std::string_view kOthers[] = {"argument", "attention_report", "constant", "reshape"};
  const OpDef& op = program.op(v);
  return op.expand || is_elementwise(op.name) || is_movement(program, v) || find_nest(op.name) ||
         std::ranges::find(kOthers, op.name.value) != std::end(kOthers);
}

}  // namespace

std::vector<std::string> reasons_against(const Program& program) {
  std::vector<std::string> reasons;
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    const Value v{i};
    if (is_written(program, v)) continue;
    const bool is_custom = program.op(v).name.value == "custom";
    std::string reason =
        is_custom
            ? "op '" + program.attributes(v).text("op") +
                  "' is defined in C++, which has no text: write it in ops of the library, or make what "
                  "it computes an argument"
            : "op '" + std::string(program.op(v).name.value) + "' has no loops in C";
    if (std::ranges::find(reasons, reason) == reasons.end()) reasons.push_back(std::move(reason));
  }
  return reasons;
}

Source emit_c(const Program& program, const SourceNames& names, const std::vector<Pattern>& patterns) {
  if (const auto reasons = reasons_against(program); !reasons.empty()) throw Unsupported(join(reasons, "; "));
  const Program known = passes::dead_code(passes::expansion(program));
  if (scalar::reasons_against(known, kLargestStraightLine).empty())
    return emit_straight_line(scalar::scalarize(known), names, patterns);
  return emit_loops(known, names, patterns);
}

}  // namespace loipe::c
