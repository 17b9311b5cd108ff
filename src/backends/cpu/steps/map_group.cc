// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/steps/map_group.h"

namespace loipe::cpu {

std::vector<std::int64_t> last_uses(const MapGroup& group) {
  std::vector<std::int64_t> last(group.slots.size(), -1);
  for (std::size_t i = 0; i < group.code.size(); ++i)
    for (Slot source : group.code[i].sources) last[source] = static_cast<std::int64_t>(i);
  return last;
}

}  // namespace loipe::cpu
