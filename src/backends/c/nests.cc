// SPDX-License-Identifier: Apache-2.0
#include "backends/c/nests.h"

namespace loipe::c {

const Nest* find_nest(std::string_view op) {
  for (const auto nests : {movement_nests(), reduction_nests(), row_nests(), attention_nests()})
    for (const Nest& nest : nests)
      if (nest.op == op) return &nest;
  return nullptr;
}

}  // namespace loipe::c
