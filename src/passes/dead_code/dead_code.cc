// SPDX-License-Identifier: Apache-2.0
#include "passes/dead_code/dead_code.h"

#include "passes/rebuild.h"

namespace loipe::passes {

Program dead_code(const Program& program) {
  const std::vector<bool> is_live = live_nodes(program);
  Rebuild rebuild(program);
  for (std::uint32_t i = 0; i < program.size(); ++i)
    if (is_live[i] || is_argument(program, Value{i})) rebuild.copy(Value{i});
  return rebuild.finish();
}

}  // namespace loipe::passes
